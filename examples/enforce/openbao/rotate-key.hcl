# What an approved rotation may touch, and nothing else.
path "transit/keys/release/rotate" {
  capabilities = ["update"]
}
