//! Regular expressions of ECMA-262, with its Unicode flag. A payload may carry one for another program, so this checks how
//! it is written, not whether `pattern` could use it.

use std::collections::BTreeSet;
use std::mem;

pub(super) fn is_regex(text: &str) -> bool {
    let mut reader = Reader { rest: text, ..Reader::default() };
    reader.pattern().is_some()
}

/// What a quantifier would apply to.
#[derive(Clone, Copy, PartialEq, Default)]
enum Last {
    /// Nothing, or something that already has one.
    #[default]
    Nothing,
    Atom,
}

enum InClass {
    Character(u32),
    /// Such as `\d`, which cannot be in a range.
    Class,
}

#[derive(Default)]
struct Reader<'t> {
    rest: &'t str,
    last: Last,
    /// The groups that are open, and the pattern itself.
    whole: Group,
    open: Vec<Group>,
    groups: u64,
    /// The highest number and all names that something refers back to.
    number: u64,
    referred: BTreeSet<String>,
    declared: BTreeSet<String>,
    /// Names of groups that can take part in the same match as one that began here.
    taken: BTreeSet<String>,
}

/// Names may repeat in different alternatives.
#[derive(Default)]
struct Group {
    looks_around: bool,
    names: Vec<String>,
    names_of_other_alternatives: Vec<String>,
}

impl Reader<'_> {
    fn pattern(&mut self) -> Option<()> {
        while let Some(sign) = self.next() {
            self.last = match sign {
                '|' => self.alternative(),
                '(' => self.open_group()?,
                ')' => self.close_group()?,
                '*' | '+' | '?' => self.quantified()?,
                '{' => self.counted()?,
                '\\' => self.escape()?,
                '[' => self.class()?,
                '^' | '$' => Last::Nothing,
                '}' | ']' => return None,
                _ => Last::Atom,
            };
        }
        let is_known = self.number <= self.groups && self.referred.is_subset(&self.declared);
        (self.open.is_empty() && is_known).then_some(())
    }

    fn next(&mut self) -> Option<char> {
        let mut signs = self.rest.chars();
        let sign = signs.next()?;
        self.rest = signs.as_str();
        Some(sign)
    }

    fn eat(&mut self, expected: char) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn need(&mut self, expected: char) -> Option<()> {
        self.eat(expected).then_some(())
    }

    /// One or more signs of a kind.
    fn run(&mut self, is_one: impl Fn(char) -> bool) -> Option<String> {
        let rest = self.rest.trim_start_matches(is_one);
        let (run, _) = self.rest.split_at(self.rest.len() - rest.len());
        let run = Some(run.to_owned()).filter(|run| !run.is_empty());
        self.rest = rest;
        run
    }

    fn group(&mut self) -> &mut Group {
        self.open.last_mut().unwrap_or(&mut self.whole)
    }

    fn alternative(&mut self) -> Last {
        let names = mem::take(&mut self.group().names);
        for name in &names {
            self.taken.remove(name);
        }
        self.group().names_of_other_alternatives.extend(names);
        Last::Nothing
    }

    fn open_group(&mut self) -> Option<Last> {
        let mut group = Group::default();
        let mut name = None;
        if !self.eat('?') {
            self.groups += 1;
        } else if self.eat('=') || self.eat('!') {
            group.looks_around = true;
        } else if self.eat('<') {
            group.looks_around = self.eat('=') || self.eat('!');
            if !group.looks_around {
                name = Some(self.name()?);
                self.groups += 1;
            }
        } else {
            self.modifiers()?;
        }
        if let Some(name) = name {
            if !self.taken.insert(name.clone()) {
                return None;
            }
            self.declared.insert(name.clone());
            self.group().names.push(name);
        }
        self.open.push(group);
        Some(Last::Nothing)
    }

    /// `:`, or flags that are switched on and off before it.
    fn modifiers(&mut self) -> Option<()> {
        if self.eat(':') {
            return Some(());
        }
        let mut left = BTreeSet::from(['i', 'm', 's']);
        let mut may_switch_off = true;
        loop {
            match self.next()? {
                ':' => return (left.len() < 3).then_some(()),
                '-' if may_switch_off => may_switch_off = false,
                flag if left.remove(&flag) => {}
                _ => return None,
            }
        }
    }

    fn close_group(&mut self) -> Option<Last> {
        let mut group = self.open.pop()?;
        self.taken.extend(group.names_of_other_alternatives.iter().cloned());
        group.names.append(&mut group.names_of_other_alternatives);
        let around = self.group();
        // The shorter list goes to the longer one: groups can be nested as deep as the text is long.
        if around.names.len() < group.names.len() {
            mem::swap(&mut around.names, &mut group.names);
        }
        around.names.append(&mut group.names);
        Some(if group.looks_around { Last::Nothing } else { Last::Atom })
    }

    fn quantified(&mut self) -> Option<Last> {
        self.eat('?');
        (self.last == Last::Atom).then_some(Last::Nothing)
    }

    /// `{2}`, `{2,}` or `{2,3}`.
    fn counted(&mut self) -> Option<Last> {
        let is_digit = |sign: char| sign.is_ascii_digit();
        let least = self.run(is_digit)?;
        if self.eat(',') && !self.rest.starts_with('}') {
            let most = self.run(is_digit)?;
            let (least, most) = (least.trim_start_matches('0'), most.trim_start_matches('0'));
            if (least.len(), least) > (most.len(), most) {
                return None;
            }
        }
        self.need('}')?;
        self.quantified()
    }

    /// `name>`
    fn name(&mut self) -> Option<String> {
        let mut name = String::new();
        while !self.eat('>') {
            let sign = match self.next()? {
                '\\' => {
                    self.need('u')?;
                    char::from_u32(self.code_point()?)?
                }
                sign => sign,
            };
            let is_later = !name.is_empty() && (sign.is_numeric() || sign == '\u{200c}' || sign == '\u{200d}');
            if !(sign.is_alphabetic() || sign == '$' || sign == '_' || is_later) {
                return None;
            }
            name.push(sign);
        }
        Some(name).filter(|name| !name.is_empty())
    }

    fn escape(&mut self) -> Option<Last> {
        match self.next()? {
            'b' | 'B' => return Some(Last::Nothing),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {}
            'p' | 'P' => self.property()?,
            'k' => {
                self.need('<')?;
                let name = self.name()?;
                self.referred.insert(name);
            }
            first @ '1'..='9' => {
                let more = self.run(|sign| sign.is_ascii_digit()).unwrap_or_default();
                self.number = self.number.max(format!("{first}{more}").parse().unwrap_or(u64::MAX));
            }
            sign => {
                self.character(sign)?;
            }
        }
        Some(Last::Atom)
    }

    /// The character that an escape stands for.
    fn character(&mut self, sign: char) -> Option<u32> {
        match sign {
            'f' => Some(0x0c),
            'n' => Some(0x0a),
            'r' => Some(0x0d),
            't' => Some(0x09),
            'v' => Some(0x0b),
            'c' => self.next().filter(char::is_ascii_alphabetic).map(|letter| u32::from(letter) % 32),
            '0' => (!self.rest.starts_with(|sign: char| sign.is_ascii_digit())).then_some(0),
            'x' => self.hex(2),
            'u' => self.code_point(),
            sign => Some(u32::from(sign)).filter(|_| !sign.is_alphanumeric()),
        }
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        (0..digits).try_fold(0, |number, _| Some(number * 16 + self.next()?.to_digit(16)?))
    }

    /// What follows `\u`; two surrogates are one character.
    fn code_point(&mut self) -> Option<u32> {
        if self.eat('{') {
            let digits = self.run(|sign| sign.is_ascii_hexdigit())?;
            self.need('}')?;
            let digits = digits.trim_start_matches('0');
            let number = if digits.is_empty() { Some(0) } else { u32::from_str_radix(digits, 16).ok() };
            return number.filter(|number| *number <= u32::from(char::MAX));
        }
        let first = self.hex(4)?;
        let after_first = self.rest;
        if (0xd800..0xdc00).contains(&first)
            && self.eat('\\')
            && self.eat('u')
            && let Some(second @ 0xdc00..0xe000) = self.hex(4)
        {
            return Some(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
        }
        self.rest = after_first;
        Some(first)
    }

    /// `{Name}` or `{Name=Value}`.
    fn property(&mut self) -> Option<()> {
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        self.need('{')?;
        self.run(is_sign)?;
        if self.eat('=') {
            self.run(is_sign)?;
        }
        self.need('}')
    }

    fn class(&mut self) -> Option<Last> {
        self.eat('^');
        while !self.eat(']') {
            let first = self.in_class()?;
            // A hyphen at the end stands for itself.
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                match (first, self.in_class()?) {
                    (InClass::Character(first), InClass::Character(last)) if first <= last => {}
                    _ => return None,
                }
            }
        }
        Some(Last::Atom)
    }

    fn in_class(&mut self) -> Option<InClass> {
        let sign = self.next()?;
        if sign != '\\' {
            return Some(InClass::Character(u32::from(sign)));
        }
        match self.next()? {
            'b' => Some(InClass::Character(0x08)),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => Some(InClass::Class),
            'p' | 'P' => self.property().map(|()| InClass::Class),
            sign => self.character(sign).map(InClass::Character),
        }
    }
}
