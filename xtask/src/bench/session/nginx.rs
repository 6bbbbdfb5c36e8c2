//! Debian's nginx as a session check: a table from tokens to answers.

use std::fmt::Write as _;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

use super::super::load::{self, Server};
use crate::step::{Failure, cannot_start, output_of, program, quiet_output_of};
use crate::tools::Tool;

/// In Debian's directory for administrators, which is not in everybody's PATH.
pub(super) const NGINX: Tool = Tool { program: "/usr/sbin/nginx", package: "nginx-light" };

/// The fields of the service's own line about a request.
const LOG: &str = r#"
  log_format line escape=none '{"time": "$time_iso8601", "level": "INFO", "target": "nginx", "message": "request answered", "request_id": "$request_id", "method": "$request_method", "operation": "get_session", "caller": {$session}, "status": $status, "seconds": $request_time}';
  access_log DIRECTORY/access.log line buffer=64k flush=1s;"#;
const NO_LOG: &str = "\n  access_log off;";

/// `tokens` has a token, an actor and a role on each line. The directory is the server's own.
pub(super) fn start(directory: &Path, tokens: &str, is_logging: bool) -> Result<Server, Failure> {
    let address = free_address()?;
    let user = output_of(&mut program("id", &["--user", "--name"]))?;
    let place = directory.to_string_lossy();
    let text = configuration(&place, user.trim(), &address, tokens, is_logging);
    let file = directory.join("nginx.conf");
    fs::write(&file, text).map_err(|error| Failure::environment(format!("{}: {error}", file.display())))?;
    let mut command = load::pinned(Path::new(NGINX.program), &["-p", &place, "-c"]);
    command.arg(&file).arg("-e").arg(directory.join("error.log"));
    Server::start_silent(&mut command, &address, &directory.join("start.log"))
}

/// `nginx/1.22.1`
pub(super) fn version() -> Result<String, Failure> {
    // It is printed to standard error.
    let text = quiet_output_of(&mut program("sh", &["-c", "\"$0\" -v 2>&1", NGINX.program]))?;
    Ok(text.trim().rsplit(' ').next().unwrap_or_default().replace('/', " "))
}

fn configuration(directory: &str, user: &str, address: &str, tokens: &str, is_logging: bool) -> String {
    let mut map = String::new();
    for line in tokens.lines() {
        if let [token, actor, role] = line.split(' ').collect::<Vec<_>>()[..] {
            let _ = writeln!(map, "    \"Bearer {token}\" '\"actor_id\":\"{actor}\",\"role\":\"{role}\"';");
        }
    }
    let log = if is_logging { LOG } else { NO_LOG }.replace("DIRECTORY", directory);
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("  {name}_temp_path {directory}/{name};\n"))
        .concat();
    format!(
        "user {user};\ndaemon off;\nworker_processes 1;\npid {directory}/nginx.pid;\n\
         events {{\n  worker_connections 1024;\n}}\nhttp {{{log}\n{temporary}  \
         map_hash_max_size 8192;\n  map_hash_bucket_size 256;\n  keepalive_requests 1000000000;\n  \
         map $http_authorization $session {{\n    default \"\";\n{map}  }}\n  \
         server {{\n    listen {address};\n    location = /v1/session {{\n      default_type application/json;\n      \
         if ($session = \"\") {{\n        return 401;\n      }}\n      return 200 \"{{$session}}\";\n    }}\n    \
         location / {{\n      return 404;\n    }}\n  }}\n}}\n"
    )
}

fn free_address() -> Result<String, Failure> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    found.map(|address| address.to_string()).map_err(|error| cannot_start("nginx", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_has_its_answer_and_a_log_is_written_only_if_asked_for() {
        let text = |is_logging| configuration("/bench", "me", "127.0.0.1:1", "abc ana initiator\n", is_logging);
        let entry = "    \"Bearer abc\" '\"actor_id\":\"ana\",\"role\":\"initiator\"';\n";
        assert!(text(false).contains(entry) && text(false).contains("access_log off;"), "{}", text(false));
        assert!(text(true).contains("access_log /bench/access.log line buffer=64k flush=1s;"), "{}", text(true));
        assert!(text(true).contains("return 200 \"{$session}\";"), "{}", text(true));
    }
}
