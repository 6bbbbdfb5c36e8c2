//! Every route of the table, asked by each role, by nobody and with a wrong token.

use pilot_core::role::Role;
use pilot_server::routes::{Handler, table};

use crate::support::harness::{Server, bearer};
use crate::support::team::{JSON, payload, person, team, token};
use crate::support::wire::Response;

/// What stands in the place of a path's variable part. A route that is not here is one this test does not know.
fn place(path: &str, item: &str) -> String {
    let samples = [
        ("/v1/items/{id}", item),
        ("/v1/workflows/{name}", "controlled-operation"),
        ("/v1/credentials/{id}", "nobody"),
        ("/v1/webhooks/{name}", "nobody"),
        ("/v1/log/tile/entries/{*tile}", "000.p/1"),
        ("/v1/log/tile/{*tile}", "0/000.p/1"),
        ("/console/{*screen}", "inbox"),
        ("/assets/{*file}", "nothing.js"),
    ];
    let Some((before, _)) = path.split_once('{') else { return path.to_owned() };
    let sample = samples.iter().find(|(known, _)| path.starts_with(known));
    let (known, value) = sample.unwrap_or_else(|| panic!("{path}: this test does not know what to ask for"));
    format!("{before}{value}{}", &path[known.len()..])
}

fn ask(server: &Server, method: &str, path: &str, authorization: Option<&str>) -> Response {
    let (is_read, body) = (method == "GET", b"{}");
    let length = format!("Content-Length: {}", body.len());
    let mut head = vec!["Host: a"];
    head.extend(authorization);
    if !is_read {
        head.extend([JSON, &length]);
    }
    let mut wire = server.wire();
    let text = format!("{method} {path} HTTP/1.1\r\n{}\r\n\r\n", head.join("\r\n"));
    wire.send(&[text.as_bytes(), if is_read { b"" } else { body }].concat());
    wire.response().unwrap_or_else(|| panic!("{method} {path}: no answer"))
}

#[test]
fn every_route_is_open_to_exactly_whom_the_table_names() {
    let installation = team();
    let server = installation.serve();
    let item = person(&server, "ana").creates("controlled-operation", &payload("low"));
    let people = [
        (Role::Initiator, "ana"),
        (Role::Approver, "ben"),
        (Role::SecurityAdmin, "sol"),
        (Role::Executor, "eli"),
        (Role::Auditor, "ada"),
    ];
    assert_eq!(people.map(|(role, _)| role), Role::ALL);
    let wrong = bearer(&token("nobody-of-this-name"));
    let mut asked = 0;
    for route in table() {
        let (method, path) = (route.method.as_str(), place(route.path, &item));
        let Handler::Guarded(access, _) = route.handler else {
            for authorization in [None, Some(&*wrong)] {
                let status = ask(&server, method, &path, authorization).status;
                assert!(![401, 403].contains(&status), "{method} {path} is open, and answers {status}");
                asked += 1;
            }
            continue;
        };
        for authorization in [None, Some(&*wrong)] {
            let verdict = ask(&server, method, &path, authorization).verdict();
            assert_eq!(verdict, "401 credential_required", "{method} {path} to {authorization:?}");
            asked += 1;
        }
        for (role, name) in people {
            let answer = ask(&server, method, &path, Some(&bearer(&token(name))));
            let verdict = answer.verdict();
            if access.allows(role) {
                let is_let_in = answer.status != 401 && verdict != "403 role_forbidden";
                assert!(is_let_in, "{method} {path} is open to {role}, and answers {verdict}");
            } else {
                assert_eq!(verdict, "403 role_forbidden", "{method} {path} to {role}");
            }
            asked += 1;
        }
    }
    println!("{asked} questions");
    server.stop().expect(0);
}
