"""What `pilot_verify.py` is made of."""
