//! What the tests send.

use pilot_notices::mail::Letter;

pub(crate) fn a_letter() -> Letter {
    Letter {
        subject: "Waits for you: Schlüssel ⟨U+202E⟩ tauschen".to_owned(),
        text: "Action needed: approve\n.\n\nFrom here: Schlüssel tauschen\n".to_owned(),
        html: "<!doctype html>\n<p>Action needed: <b>approve</b></p>\n".to_owned(),
    }
}
