//! The table of limits, row by row: each bound that a caller can reach has a test that reaches it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pilot_core::limits::TABLE;

/// Each row, and the tests that show it. A row without a test here fails, and so does a test that is not there.
#[rustfmt::skip]
const SHOWN: &[(&str, &[&str])] = &[
    ("Token", &["a_token_has_32_to_256_bytes_even_when_the_file_has_the_digest_of_another"]),
    ("Access token, with mechanism `oauth`", &["a_text_two_readers_could_take_differently_is_refused"]),
    ("Id of an access token (`jti`)", &["a_token_says_of_whom_it_speaks_and_which_one_it_is"]),
    ("Scopes, groups or roles read from an access token", &["every_required_scope_must_be_in_the_token", "the_roles_claim_is_a_list_of_strings_wherever_it_is"]),
    ("Requests waiting for a key of the identity provider", &["no_more_than_so_many_wait_for_a_provider_that_hangs"]),
    ("Signature by the program in `log.signer`", &["while_a_signer_fails_nothing_is_accepted_and_when_it_recovers_everything_is"]),
    ("Attestations in progress", &["attestations_have_places_of_their_own_and_an_actor_has_four_at_a_time"]),
    ("Spans waiting for the collector in `[traces]`", &["what_cannot_be_sent_fast_enough_is_dropped_and_counted"]),
    ("Signatures waiting for that program, other than of checkpoints", &["a_checkpoint_waits_for_one_signature_at_most_and_so_many_others_may_wait_though_they_are_given_up"]),
    ("Request body", &["a_body_that_is_too_large_for_its_operation_is_refused_with_the_limit", "one_byte_over_the_limit_of_an_operation_is_too_large_with_and_without_a_length"]),
    ("Values in a request body, at every level", &["a_body_with_too_many_values_or_faults_is_refused_and_the_answer_stays_small", "values_are_counted_before_they_are_kept", "a_body_of_more_values_than_there_may_be_costs_little"]),
    ("Faults listed per request", &["a_body_with_too_many_values_or_faults_is_refused_and_the_answer_stays_small", "a_body_full_of_faults_costs_little"]),
    ("Body of a refused request, read and discarded", &["nobody_is_listened_to_without_end", "a_client_that_sends_all_before_it_reads_gets_its_answer_and_goes_on", "refused_writes_are_refused_before_they_cost_others_their_turn"]),
    ("Bytes of request bodies and answers in flight", &["one_actor_cannot_hold_what_is_for_the_others", "so_many_of_one_actor_wait_for_a_share_and_the_rest_are_refused_at_once", "bodies_under_way_hold_no_more_than_their_actor_may", "answers_that_are_read_slowly_hold_no_more_than_their_actor_may"]),
    ("Long-running work: large bodies, long lists, long URLs", &["one_actor_cannot_take_every_thread", "so_many_of_one_asker_wait_and_the_rest_are_refused_at_once", "http_2_requests_that_wait_for_their_turn_are_counted", "a_caller_with_a_credential_is_served_at_an_address_that_has_used_up_its_turns"]),
    ("Header block", &["headers_have_at_most_64_fields_and_16_kib_and_a_url_8_kib"]),
    ("URL", &["headers_have_at_most_64_fields_and_16_kib_and_a_url_8_kib", "the_longest_url_and_the_longest_query_cost_little"]),
    ("Query parameter", &["query_parameters_are_known_given_once_and_in_range"]),
    ("Items of one machine that have not ended", &["of_many_that_a_machine_proposes_at_once_exactly_the_allowed_number_is_accepted"]),
    ("Title", &["lengths_are_counted_in_characters_and_end_where_the_limits_say"]),
    ("Comment", &["lengths_are_counted_in_characters_and_end_where_the_limits_say", "the_largest_comment_costs_little"]),
    ("Payload", &["lengths_are_counted_in_characters_and_end_where_the_limits_say", "the_largest_draft_costs_little", "a_body_of_as_many_values_as_there_may_be_costs_little"]),
    ("Check of a payload against its schema", &["a_check_that_would_take_hours_is_stopped_with_a_fault", "the_deepest_check_there_can_be_does_not_exhaust_the_stack"]),
    ("Result of an execution", &["lengths_are_counted_in_characters_and_end_where_the_limits_say"]),
    ("Page of a list", &["query_parameters_are_known_given_once_and_in_range", "a_summary_is_the_item_without_its_content_and_says_how_many_there_are"]),
    ("Items searched for one page of a list", &["no_search_sorts_or_looks_through_more_than_it_has_to", "searches_whose_askers_are_gone_hold_up_nobody"]),
    ("Items searched for a sorted list", &["a_sorted_list_of_more_than_can_be_searched_is_refused"]),
    ("Contents searched for one page of a list", &["a_search_of_contents_ends_its_visit_after_so_many_bytes_and_finds_everything_in_the_end"]),
    ("Total of a list", &["a_list_of_more_than_can_be_counted_has_no_total"]),
    ("Proofs in one answer", &["a_long_history_comes_in_pages_each_entry_once_and_in_order", "an_item_with_many_comments_costs_its_readers_a_bounded_time"]),
    ("Query to the store", &["a_question_is_dropped_when_its_asker_has_gone_and_refused_when_too_many_wait", "a_question_that_takes_too_long_is_broken_off_and_so_is_one_whose_asker_goes"]),
    ("Disk that does not respond", &["a_disk_that_does_not_answer_is_told_to_everyone_and_writing_goes_on_when_it_does"]),
    ("Entries of an item that still takes comments", &["an_item_with_very_many_entries_takes_no_more_comments"]),
    ("Page of a list, total size of its payloads", &["a_page_of_the_largest_drafts_costs_little"]),
    ("Idempotency key", &["a_key_is_1_to_255_visible_characters_bare_or_quoted"]),
    ("First byte of a connection", &["two_thousand_slow_clients_are_let_go_while_others_are_served"]),
    ("Request headers", &["two_thousand_slow_clients_are_let_go_while_others_are_served", "the_second_request_of_a_connection_has_the_same_deadline_as_the_first"]),
    ("Request body, time to arrive", &["a_body_that_trickles_ends_its_connection_within_30_s"]),
    ("TLS handshake", &["slow_and_nonsensical_handshakes_are_let_go_and_hurt_nobody"]),
    ("Idle connection", &["an_idle_connection_is_kept_for_longer_than_a_slow_one"]),
    ("Wait for required witnesses before an effect", &["with_one_of_two_required_effects_go_on_and_with_two_they_wait_for_both"]),
    ("Open connections", &["a_service_that_may_open_few_files_outlives_more_clients_than_it_has_room_for"]),
    ("Open connections per address (IPv6: per /64)", &["one_address_cannot_hold_the_connections_of_others", "silent_connections_make_room_for_those_who_speak", "an_ipv6_network_of_one_customer_counts_as_one_address"]),
    ("New connections per address (IPv6: per /64)", &["one_address_opens_so_many_connections_a_second_unless_many_come_from_it"]),
    ("Live feeds per actor", &["an_actor_has_so_many_feeds_and_closing_one_makes_room", "feeds_that_are_not_read_are_few_and_readiness_says_so"]),
    ("Live feeds in total", &["so_many_feeds_are_open_in_all_and_each_that_ends_makes_room"]),
    ("HTTP/2 requests on one connection", &["http_2_bodies_without_an_end_hold_no_more_than_their_actor_may"]),
    ("HTTP/2 requests in progress, or with an answer the peer has not read", &["requests_over_http_2_are_counted_until_they_are_done", "http_2_answers_to_nobody_that_are_not_read_are_counted"]),
    ("HTTP/2 bytes not yet read", &["http_2_bodies_in_frames_of_a_byte_cost_a_bounded_part_of_memory"]),
    ("Answer of the timestamping authority", &["an_authority_that_is_away_or_answers_something_else_delays_nobody_and_is_named"]),
    ("Artifacts named in an attestation", &["an_attestation_names_the_item_its_people_and_what_was_approved"]),
    ("Evidence bundles in progress", &["an_actor_has_one_bundle_at_a_time_and_all_have_two", "an_actor_is_sent_one_bundle_at_a_time_and_a_reader_who_leaves_makes_room", "exports_leave_room_for_everyone_else"]),
    ("Cosigned checkpoints in one evidence bundle", &["too_many_checkpoints_are_thinned_out_evenly_and_the_first_and_the_last_stay"]),
    ("Permits in progress", &["permits_have_places_of_their_own_and_an_actor_has_four_at_a_time"]),
    ("Permit that `pilot permit verify` and `pilot gate` read", &["a_gate_that_is_set_up_wrongly_runs_nothing"]),
    ("Approved files of one command behind `pilot gate`", &["what_is_not_a_plain_regular_file_is_refused"]),
    ("Requests per actor, with rate limits", &["reads_and_writes_of_an_actor_have_budgets_of_their_own"]),
    ("Requests per address without a valid credential, with rate limits", &["an_address_without_a_valid_credential_is_limited_and_a_valid_one_from_there_is_not"]),
];

/// What takes a test too long to reach, and why. It only gets shorter.
const OUT_OF_REACH: &[(&str, &str)] = &[
    ("Time for one evidence bundle or permit", "an hour"),
    ("Entries in one evidence bundle", "a ledger of a million entries"),
    ("Evidence bundle that includes a report", "a bundle of 8 MiB"),
];

/// What only those reach who run the service, or whom it asks itself. No caller can cost anyone anything by these.
const NOT_OF_CALLERS: &[&str] = &[
    "Key set of the identity provider",
    "Use of stored keys while the identity provider cannot be reached",
    "Answer of the identity provider",
    "Digest in the credential file",
    "Roles per credential",
    "Actor id",
    "Credential id",
    "Subject in the role map",
    "Credential file, role map",
    "Mesh secrets",
    "Name of the installation in its console",
    "Faults listed per file",
    "Operator's name in the ledger",
    "Workflow definitions in force",
    "Revocations kept outside the database",
    "Forward jump of the machine's clock",
    "Outage that includes a restart of the machine",
    "Answer of a secret manager, run time of a credential helper",
    "Workflow definition",
    "Payload schema of a definition",
    "Request to a witness",
    "Webhook endpoints",
    "Chats and mail servers for notices",
    "Message to a chat or a person",
    "Delivery of a message to a chat or a person",
    "Message to a webhook endpoint",
    "Delivery to a webhook endpoint",
    "Message under way to an endpoint, a chat or a person when the service stops",
    "Failure of a webhook endpoint",
];

#[test]
fn every_bound_that_a_caller_can_reach_has_a_test_that_reaches_it() {
    let tests = test_functions();
    let mut missing = Vec::new();
    let is_left_out = |what: &str| NOT_OF_CALLERS.contains(&what) || OUT_OF_REACH.iter().any(|(row, _)| *row == what);
    for (what, ..) in TABLE.iter().filter(|(what, ..)| !is_left_out(what)) {
        match SHOWN.iter().find(|(row, _)| row == what) {
            None => missing.push(format!("no test is named for the row `{what}`")),
            Some((_, names)) => {
                let gone = names.iter().filter(|name| !tests.contains(**name));
                missing.extend(gone.map(|name| format!("`{what}` names `{name}`, and there is no such test")));
            }
        }
    }
    let known = |row: &str| TABLE.iter().any(|(what, ..)| *what == row);
    let left_out = NOT_OF_CALLERS.iter().copied().chain(OUT_OF_REACH.iter().map(|(row, _)| *row));
    let rows = SHOWN.iter().map(|(row, _)| *row).chain(left_out);
    missing.extend(rows.filter(|row| !known(row)).map(|row| format!("`{row}` is not a row of the table")));
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The names of all functions that are tests, in every crate.
fn test_functions() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    walk(crates, &mut files);
    let mut names = BTreeSet::new();
    for text in files.iter().map(|file| fs::read_to_string(file).unwrap()) {
        let mut is_test = false;
        for line in text.lines().map(str::trim) {
            match line.strip_prefix("async fn ").or_else(|| line.strip_prefix("fn ")) {
                Some(rest) if is_test => drop(names.insert(rest.split('(').next().unwrap().to_owned())),
                _ => {}
            }
            is_test =
                line.starts_with("#[test]") || line.starts_with("#[tokio::test") || is_test && line.starts_with("#[");
        }
    }
    names
}

fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && name != "node_modules" {
            walk(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}
