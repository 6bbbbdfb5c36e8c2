//! Everything a service did to its files, and every answer it gave, in the order in which it happened.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

/// All that can change a file, or tell somebody of it.
pub const CALLS: &str = "openat,mkdir,mkdirat,write,writev,pwrite64,pwritev,pwritev2,ftruncate,truncate,fallocate,\
                         copy_file_range,fsync,fdatasync,rename,renameat,renameat2,link,linkat,symlink,unlink,unlinkat,\
                         sendto,sendmsg";

/// What `strace` is asked for besides: everything whole, and paths for descriptors.
pub const OPTIONS: [&str; 8] = ["-f", "-y", "-a", "1", "-s", "10000000", "-e", "signal=none"];

/// A tracer of a running service, once it has taken hold.
pub fn attached(mut strace: Command) -> Child {
    let mut child = strace.stderr(Stdio::piped()).spawn().expect("strace must be installed");
    let mut words = String::new();
    BufReader::new(child.stderr.as_mut().unwrap()).read_line(&mut words).unwrap();
    assert!(words.contains("attached"), "{words}");
    child
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    Create(PathBuf),
    MakeDirectory(PathBuf),
    Write {
        path: PathBuf,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        path: PathBuf,
        length: usize,
    },
    /// Of a file or of a directory.
    Sync(PathBuf),
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    /// Another name for a file.
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Unlink(PathBuf),
    /// 201 went out to whoever asked.
    Acknowledge {
        item: String,
        version: u64,
    },
}

/// A deed, and the lines of the trace where it began and ended. What never ended may have happened or not.
#[derive(Debug, Clone)]
pub struct Step {
    pub began: usize,
    pub ended: usize,
    pub deed: Deed,
}

/// Reads what `strace` wrote about a service with everything in `directory`. Paths are given from there.
pub fn read(trace: &[u8], directory: &Path) -> Vec<Step> {
    let mut reader = Reader { directory, offsets: HashMap::new(), steps: Vec::new() };
    let mut unfinished: HashMap<&[u8], (usize, Vec<u8>)> = HashMap::new();
    for (number, line) in trace.split(|byte| *byte == b'\n').enumerate() {
        let Some(space) = line.iter().position(|byte| *byte == b' ') else { continue };
        let (process, call) = (&line[..space], line[space..].trim_ascii_start());
        if let Some(rest) = call.strip_prefix(b"<... ") {
            let (began, mut whole) = unfinished.remove(process).expect("a call begins before it goes on");
            let resumed = rest.iter().position(|byte| *byte == b'>').expect("resumed>");
            whole.extend_from_slice(&rest[resumed + 1..]);
            reader.call(&whole, began, number);
        } else if let Some(begun) = call.strip_suffix(b" <unfinished ...>") {
            unfinished.insert(process, (number, begun.to_vec()));
        } else if !call.starts_with(b"+++") {
            reader.call(call, number, number);
        }
    }
    for (began, begun) in unfinished.into_values() {
        reader.call(&begun, began, usize::MAX);
    }
    reader.steps.sort_by_key(|step| step.began);
    reader.steps
}

struct Reader<'r> {
    directory: &'r Path,
    /// Where the next plain write to a descriptor goes.
    offsets: HashMap<usize, usize>,
    steps: Vec<Step>,
}

impl Reader<'_> {
    fn call(&mut self, text: &[u8], began: usize, ended: usize) {
        let open = text.iter().position(|byte| *byte == b'(').expect("a call");
        let name = std::str::from_utf8(&text[..open]).unwrap();
        let mut arguments = Arguments(&text[open + 1..]);
        let deed = self.deed(name, &mut arguments);
        let outcome = arguments.outcome();
        // What failed did nothing. What never ended has no outcome.
        if ended != usize::MAX && outcome.is_none() {
            return;
        }
        if let ("openat", Some((descriptor, path))) = (name, outcome) {
            self.offsets.insert(descriptor, 0);
            self.open(deed.as_ref(), path, began, ended);
        } else if let Some(deed) = deed {
            self.steps.push(Step { began, ended, deed });
        }
    }

    /// An opened file may have been made, or emptied.
    fn open(&mut self, deed: Option<&Deed>, path: Option<PathBuf>, began: usize, ended: usize) {
        let Some(path) = path.and_then(|path| self.ours(&path)) else { return };
        match deed {
            Some(Deed::Truncate { .. }) => {
                self.steps.push(Step { began, ended, deed: Deed::Create(path.clone()) });
                self.steps.push(Step { began, ended, deed: Deed::Truncate { path, length: 0 } });
            }
            Some(Deed::Create(_)) => self.steps.push(Step { began, ended, deed: Deed::Create(path) }),
            _ => {}
        }
    }

    fn ours(&self, path: &Path) -> Option<PathBuf> {
        let path = path.strip_prefix(self.directory).ok()?;
        (!path.to_string_lossy().ends_with("-shm")).then(|| path.to_owned())
    }

    /// From an argument, which may be relative.
    fn named(&self, path: String) -> Option<PathBuf> {
        self.ours(&self.directory.join(path))
    }

    fn deed(&mut self, name: &str, arguments: &mut Arguments<'_>) -> Option<Deed> {
        match name {
            "openat" => {
                let (_, path) = (arguments.descriptor(), arguments.path());
                let flags = arguments.word();
                let path = self.named(path).unwrap_or_default();
                assert!(!flags.contains("O_APPEND") || path == Path::new(""), "{}: {flags}", path.display());
                match (flags.contains("O_CREAT"), flags.contains("O_TRUNC")) {
                    (_, true) => Some(Deed::Truncate { path, length: 0 }),
                    (true, false) => Some(Deed::Create(path)),
                    (false, false) => None,
                }
            }
            "mkdir" => self.named(arguments.path()).map(Deed::MakeDirectory),
            "write" | "sendto" => {
                let ((descriptor, path), bytes) = (arguments.descriptor(), arguments.bytes());
                let Some(path) = self.ours(&path) else { return acknowledgement(&bytes) };
                let offset = self.offsets.get_mut(&descriptor).expect("a file that was opened in the trace");
                *offset += bytes.len();
                Some(Deed::Write { path, offset: *offset - bytes.len(), bytes })
            }
            "writev" | "sendmsg" => {
                let (_, path) = arguments.descriptor();
                assert_eq!(self.ours(&path), None, "is written in a way this test does not know");
                acknowledgement(&arguments.vector())
            }
            "pwrite64" => {
                let ((_, path), bytes) = (arguments.descriptor(), arguments.bytes());
                let _length = arguments.word();
                let offset = arguments.word().parse().unwrap();
                self.ours(&path).map(|path| Deed::Write { path, offset, bytes })
            }
            "ftruncate" => {
                let ((_, path), length) = (arguments.descriptor(), arguments.word().parse().unwrap());
                self.ours(&path).map(|path| Deed::Truncate { path, length })
            }
            "fsync" | "fdatasync" => self.ours(&arguments.descriptor().1).map(Deed::Sync),
            "rename" => {
                let (from, to) = (self.named(arguments.path()), self.named(arguments.path()));
                from.zip(to).map(|(from, to)| Deed::Rename { from, to })
            }
            "linkat" => {
                let (_, from) = (arguments.descriptor(), self.named(arguments.path()));
                let (_, to) = (arguments.descriptor(), self.named(arguments.path()));
                from.zip(to).map(|(from, to)| Deed::Link { from, to })
            }
            "unlink" => self.named(arguments.path()).map(Deed::Unlink),
            other => panic!("{other} changes files in a way this test does not know"),
        }
    }
}

fn acknowledgement(bytes: &[u8]) -> Option<Deed> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.starts_with("HTTP/1.1 201 "))?;
    let body: Value = serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap();
    let item = body["item_id"].as_str().or(body["id"].as_str()).unwrap().to_owned();
    Some(Deed::Acknowledge { item, version: body["version"].as_u64().unwrap() })
}

/// What stands between the parentheses, from the left, and then the outcome.
struct Arguments<'a>(&'a [u8]);

impl Arguments<'_> {
    fn skip(&mut self) {
        while let [b' ' | b',' | b'[' | b'{', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }

    /// Up to what ends an argument.
    fn word(&mut self) -> String {
        self.skip();
        let end = self.0.iter().position(|byte| matches!(byte, b',' | b')' | b' ')).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        String::from_utf8(word.to_vec()).unwrap()
    }

    /// `12</where/it/is>`
    fn descriptor(&mut self) -> (usize, PathBuf) {
        self.skip();
        let open = self.0.iter().position(|byte| *byte == b'<').expect("a descriptor has a path");
        let close = self.0.iter().position(|byte| *byte == b'>').expect("a path ends");
        let number = std::str::from_utf8(&self.0[..open]).unwrap().parse().unwrap_or(usize::MAX);
        let path = PathBuf::from(std::str::from_utf8(&self.0[open + 1..close]).unwrap());
        self.0 = &self.0[close + 1..];
        // What has no name any more is nobody's after a power cut.
        match self.0.strip_prefix(b"(deleted)") {
            Some(rest) => {
                self.0 = rest;
                (number, PathBuf::from("(deleted)"))
            }
            None => (number, path),
        }
    }

    fn path(&mut self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    /// A string as C writes it.
    fn bytes(&mut self) -> Vec<u8> {
        self.skip();
        assert_eq!(self.0.first(), Some(&b'"'), "a string: {}", String::from_utf8_lossy(self.0));
        let (mut bytes, mut at) = (Vec::new(), 1);
        loop {
            let byte = self.0[at];
            at += 1;
            match byte {
                b'"' => break,
                b'\\' => {
                    let escaped = self.0[at];
                    at += 1;
                    bytes.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'v' => 0x0b,
                        b'f' => 0x0c,
                        b'0'..=b'7' => {
                            let mut value = u32::from(escaped - b'0');
                            let digits = self.0[at..].iter().take(2).take_while(|byte| matches!(byte, b'0'..=b'7'));
                            for digit in digits {
                                value = value * 8 + u32::from(digit - b'0');
                                at += 1;
                            }
                            u8::try_from(value).unwrap()
                        }
                        other => other,
                    });
                }
                other => bytes.push(other),
            }
        }
        self.0 = &self.0[at..];
        assert!(!self.0.starts_with(b"..."), "the trace is cut");
        bytes
    }

    /// The parts of a vector, one after the other.
    fn vector(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (base, length) = (b"iov_base=".as_slice(), b"iov_len=".as_slice());
        while let Some(start) = self.0.windows(base.len()).position(|window| window == base) {
            self.0 = &self.0[start + base.len()..];
            bytes.extend(self.bytes());
            let end = self.0.windows(length.len()).position(|window| window == length).expect("a part has a length");
            self.0 = &self.0[end..];
        }
        bytes
    }

    /// A number, and for a new descriptor its path; nothing for an error.
    fn outcome(&mut self) -> Option<(usize, Option<PathBuf>)> {
        let equals = self.0.windows(4).rposition(|window| window == b") = ")?;
        self.0 = &self.0[equals + 4..];
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&self.0[..digits]).unwrap().parse().ok()?;
        let path = (self.0.get(digits) == Some(&b'<')).then(|| self.descriptor().1);
        Some((number, path))
    }
}
