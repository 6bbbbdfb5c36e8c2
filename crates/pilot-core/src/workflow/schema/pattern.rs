//! Patterns: the syntax that JSON Schema takes from ECMA-262, as far as it can be searched for in linear time.
//!
//! `regex-syntax` reads them. The search is our own: it visits each state of the program at most once per character, and
//! counts the visits.

mod program;

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet, ClassSetItem, ClassSetRange, ClassSetUnion, Literal,
    LiteralKind, Span, SpecialLiteralKind,
};
use regex_syntax::hir::translate::Translator;

use self::program::Program;
use super::work::Work;
use crate::limits::PATTERN_BYTES_MAX;

/// `\s` of ECMA-262: its WhiteSpace and its LineTerminator.
const SPACE: [(char, char); 10] = [
    ('\t', '\r'),
    (' ', ' '),
    ('\u{a0}', '\u{a0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200a}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202f}', '\u{202f}'),
    ('\u{205f}', '\u{205f}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{feff}', '\u{feff}'),
];
const DIGIT: [(char, char); 1] = [('0', '9')];
const WORD: [(char, char); 4] = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];

/// What reading a class takes, as so many states: one of Unicode has hundreds of ranges, and the case of letters in a large
/// range may have to be looked up.
const UNICODE_CLASS_STATES: usize = 300;
const LARGE_RANGE_STATES: usize = 100;
const SMALL_RANGE_MAX: u32 = 1_000;

#[derive(Debug)]
pub(super) struct Pattern(Program);

impl Pattern {
    /// `room` is how many states the program may have, and what is left of them afterwards.
    pub(super) fn read(text: &str, room: &mut usize) -> Result<Pattern, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("it has more than {PATTERN_BYTES_MAX} bytes"));
        }
        let text = literal_in_classes(text);
        let mut ast = Parser::new().parse(&text).map_err(|error| error.kind().to_string())?;
        let states = to_ecma(&mut ast).ok_or("unrecognized escape sequence")?;
        // Before they are looked up.
        *room = room.checked_sub(states).ok_or("it has too many classes")?;
        let hir = Translator::new().translate(&text, &ast).map_err(|error| error.kind().to_string())?;
        Program::of(&hir, room).map(Pattern).ok_or_else(|| "its repetitions are too large".to_owned())
    }

    /// Whether the pattern is found anywhere in the text.
    pub(super) fn is_in(&self, text: &str, work: &mut Work) -> bool {
        self.0.is_in(text, work)
    }
}

/// Where the reading of a class is: whether a hyphen would make a range of what comes before and after it.
#[derive(Clone, Copy, PartialEq)]
enum InClass {
    Fresh,
    Begun,
    Delimited,
}

impl InClass {
    fn after_one_more(self) -> InClass {
        if self == InClass::Delimited { InClass::Fresh } else { InClass::Begun }
    }
}

/// In a class of ECMA-262, `[`, `&&`, `~~` and a hyphen that makes no range stand for themselves. To the parser they would
/// nest and combine classes. `\cA` is a control character to ECMA-262 only.
fn literal_in_classes(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern.chars().peekable();
    let (mut is_open, mut state) = (false, InClass::Fresh);
    // Whether what came last was a class of its own, such as `\d`.
    let mut was_class = false;
    while let Some(sign) = rest.next() {
        let next = rest.peek().copied();
        let is_class = sign == '\\' && next.is_some_and(|escaped| "dDsSwW".contains(escaped));
        match sign {
            '\\' => escape(&mut rest, &mut text),
            '[' if !is_open => {
                text.push('[');
                text.extend(rest.next_if_eq(&'^'));
                (is_open, state, was_class) = (true, InClass::Fresh, false);
                continue;
            }
            ']' => {
                text.push(']');
                is_open = false;
            }
            '-' if is_open && was_class && next == Some('-') => {
                rest.next();
                text.push_str("\\-\\-");
            }
            '-' if is_open && state == InClass::Begun && next.is_some_and(|next| next != ']') => {
                text.push('-');
                (state, was_class) = (InClass::Delimited, false);
                continue;
            }
            '[' | '&' | '~' | '-' if is_open => text.extend(['\\', sign]),
            other => text.push(other),
        }
        (state, was_class) = (state.after_one_more(), is_class);
    }
    text
}

/// Writes out what follows a backslash.
fn escape(rest: &mut Peekable<Chars<'_>>, text: &mut String) {
    let escaped = rest.next();
    match rest.next_if(|letter| escaped == Some('c') && letter.is_ascii_alphabetic()) {
        Some(letter) => drop(write!(text, "\\x{{{:x}}}", u32::from(letter) % 32)),
        None => text.extend(['\\'].into_iter().chain(escaped)),
    }
}

/// Gives `\d`, `\w` and `\s` the meaning they have in ECMA-262. Returns what its classes take, or nothing for `\a`, which is
/// not an escape there.
fn to_ecma(ast: &mut Ast) -> Option<usize> {
    match ast {
        Ast::Literal(literal) => (literal.kind != LiteralKind::Special(SpecialLiteralKind::Bell)).then_some(0),
        Ast::ClassPerl(class) => {
            let mut class = written_out(class);
            let states = class_to_ecma(&mut class);
            *ast = Ast::class_bracketed(class);
            Some(states)
        }
        Ast::ClassBracketed(class) => Some(class_to_ecma(class)),
        Ast::Repetition(repetition) => to_ecma(&mut repetition.ast),
        Ast::Group(group) => to_ecma(&mut group.ast),
        Ast::Alternation(alternation) => alternation.asts.iter_mut().map(to_ecma).sum(),
        Ast::Concat(concat) => concat.asts.iter_mut().map(to_ecma).sum(),
        Ast::ClassUnicode(_) => Some(UNICODE_CLASS_STATES),
        Ast::Empty(_) | Ast::Flags(_) | Ast::Dot(_) | Ast::Assertion(_) => Some(0),
    }
}

fn class_to_ecma(class: &mut ClassBracketed) -> usize {
    set_to_ecma(&mut class.kind) + if class.negated { LARGE_RANGE_STATES } else { 0 }
}

fn set_to_ecma(set: &mut ClassSet) -> usize {
    match set {
        ClassSet::Item(item) => item_to_ecma(item),
        ClassSet::BinaryOp(operation) => set_to_ecma(&mut operation.lhs) + set_to_ecma(&mut operation.rhs),
    }
}

fn item_to_ecma(item: &mut ClassSetItem) -> usize {
    match item {
        ClassSetItem::Perl(class) => {
            let mut class = written_out(class);
            let states = class_to_ecma(&mut class);
            *item = ClassSetItem::Bracketed(Box::new(class));
            states
        }
        ClassSetItem::Bracketed(class) => class_to_ecma(class),
        ClassSetItem::Union(union) => union.items.iter_mut().map(item_to_ecma).sum(),
        ClassSetItem::Range(range) => {
            let length = u32::from(range.start.c).abs_diff(range.end.c.into());
            if length > SMALL_RANGE_MAX { LARGE_RANGE_STATES } else { 0 }
        }
        ClassSetItem::Unicode(_) => UNICODE_CLASS_STATES,
        ClassSetItem::Empty(_) | ClassSetItem::Literal(_) | ClassSetItem::Ascii(_) => 0,
    }
}

fn written_out(class: &ClassPerl) -> ClassBracketed {
    let ranges: &[(char, char)] = match class.kind {
        ClassPerlKind::Digit => &DIGIT,
        ClassPerlKind::Space => &SPACE,
        ClassPerlKind::Word => &WORD,
    };
    let items = ranges.iter().map(|(first, last)| range(class.span, *first, *last)).collect();
    let kind = ClassSet::union(ClassSetUnion { span: class.span, items });
    ClassBracketed { span: class.span, negated: class.negated, kind }
}

fn range(span: Span, first: char, last: char) -> ClassSetItem {
    let literal = |c| Literal { span, kind: LiteralKind::Verbatim, c };
    ClassSetItem::Range(ClassSetRange { span, start: literal(first), end: literal(last) })
}
