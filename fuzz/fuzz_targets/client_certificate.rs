//! A caller's certificate in a header, in each format: what is read is what a proxy would have written, and nothing else.
#![no_main]

mod cost;

use libfuzzer_sys::fuzz_target;
use pilot_core::client_certificate::{CHAIN_MAX, read_byte_sequence, read_byte_sequences, read_escaped_pem, read_xfcc};
use pilot_core::limits::HEADER_BLOCK_BYTES_MAX;

fuzz_target!(|line: &[u8]| {
    check(line);
    if let Some(line) = cost::grown(line, b"", HEADER_BLOCK_BYTES_MAX) {
        cost::bounded(line.len(), || check(&line));
    }
});

fn check(line: &[u8]) {
    if let Ok(certificate) = read_byte_sequence(line) {
        assert!(certificate.len() < line.len());
        assert_eq!(read_byte_sequences([line].into_iter()), Ok(vec![certificate]));
    }
    if let Ok(certificates) = read_byte_sequences([line].into_iter()) {
        assert!(certificates.len() <= CHAIN_MAX);
    }
    if let Ok(certificates) = read_escaped_pem(line) {
        assert_eq!(certificates.len(), 1);
        assert!(!certificates[0].is_empty());
        assert!(line.iter().all(|byte| byte.is_ascii_alphanumeric() || b"%-".contains(byte)));
    }
    if let Ok(certificates) = read_xfcc(line) {
        assert!((1..=CHAIN_MAX + 1).contains(&certificates.len()));
        let count = |key: &[u8]| line.windows(key.len()).filter(|found| *found == key).count();
        assert!(count(b"Cert=") >= 1 && count(b"Hash=") >= 1);
        // Envoy's own hash, of which there is only one.
        assert!(read_xfcc(&[line, b";Hash=00"].concat()).is_err());
        assert!(read_xfcc(&[line, b",By=a"].concat()).is_err());
    }
}
