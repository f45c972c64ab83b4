//! A remark as LLVM writes optimisation remarks with `-fsave-optimization-record`: a YAML document whose tag is the
//! decision, and whose arguments, one after another, are its text. Numbers are arguments of their own.

use std::fmt::Write;

use super::{Kind, Place, Remark};

pub(super) fn of(remark: &Remark) -> String {
    let tag = match remark.kind() {
        Kind::Taken => "Passed",
        Kind::Left => "Missed",
        Kind::Refused => "Failure",
    };
    let mut text = format!("--- !{tag}\nPass:            {}\nName:            {}\n", remark.pass, remark.reason.name());
    if let Some(place) = remark.places.iter().flatten().next() {
        text += &format!("DebugLoc:        {}\n", location(place));
    }
    text += &format!("Function:        {}\nArgs:\n", quoted(&remark.function));
    for argument in arguments(remark) {
        argument.write(&mut text);
    }
    text + "...\n"
}

/// A part of the text.
struct Argument<'a> {
    name: String,
    value: String,
    place: Option<&'a Place>,
}

impl Argument<'_> {
    fn of(name: &str, value: impl Into<String>) -> Self {
        Argument { name: name.to_owned(), value: value.into(), place: None }
    }

    fn write(&self, text: &mut String) {
        writeln!(text, "  - {}: {}", self.name, quoted(&self.value)).expect("text");
        if let Some(place) = self.place {
            writeln!(text, "    DebugLoc: {}", location(place)).expect("text");
        }
    }
}

fn arguments(remark: &Remark) -> Vec<Argument<'_>> {
    let mut all = vec![Argument::of("Subject", &remark.subject)];
    for (i, place) in remark.places.iter().enumerate() {
        all.push(Argument::of("String", if i == 0 { " at " } else { " and " }));
        let shown = place.as_ref().map_or_else(|| "?".to_owned(), Place::to_string);
        all.push(Argument { place: place.as_ref(), ..Argument::of("Place", shown) });
    }
    all.push(Argument::of("String", ": "));
    let text = remark.reason.to_string();
    let mut rest = &*text;
    for (name, number) in remark.reason.numbers() {
        let Some((before, after)) = rest.split_once(&number.to_string()) else { continue };
        if !before.is_empty() {
            all.push(Argument::of("String", before));
        }
        all.push(Argument::of(&capitalised(name), number.to_string()));
        rest = after;
    }
    if !rest.is_empty() {
        all.push(Argument::of("String", rest));
    }
    all
}

fn location(place: &Place) -> String {
    format!("{{ File: {}, Line: {}, Column: {} }}", quoted(&place.file), place.line, place.column)
}

fn capitalised(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

/// A scalar that YAML takes for this text, whatever is in it.
fn quoted(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => write!(quoted, "\\x{:02x}", u32::from(c)).expect("text"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::super::{Aligned, Format, GuardKind, MeldCase, Melding, Place, Reason, Remark};

    fn place(line: u32) -> Option<Place> {
        Some(Place { file: "it's a.c".to_owned(), line, column: 5, inlined_at: None })
    }

    fn remarks() -> Vec<Remark> {
        let aligned = Aligned { pairs: 3, apart: 30, fused: 33 };
        let case = MeldCase::BlockWithRegion;
        let (loops, exit_phis, carried) = (8, 9, 10);
        let (score, pairs, selects, branches) = (20, 4, 5, 1);
        let (apart, melded, cycles) = (60, 35, -7);
        let (saved, places) = (11, 2);
        let (loss, loss_of_turn) = (14, 15);
        let melding = Melding {
            loss,
            loss_of_turn,
            case,
            score,
            pairs,
            selects,
            branches,
            apart,
            melded,
            saved,
            places,
            cycles,
            loops,
            exit_phis,
            carried,
        };
        let reasons = [
            Reason::CallsFused { callee: 40, fusion: 4, guard: GuardKind::Phi },
            Reason::CallsWithoutProfit { callee: 4, fusion: 4 },
            Reason::TailsMerged { common: 12 },
            Reason::TailsWithoutProfit { common: 1, jumps: 1 },
            Reason::ArmsFused(aligned),
            Reason::ArmsWithoutProfit(aligned),
            Reason::LoopsApart { costs: Some(3) },
            Reason::LoopsApart { costs: None },
            Reason::LoopsAlike { loops: 2, costs: 9, gain: 50 },
            Reason::RowsWithoutProfit { apart: 30, row: 40 },
            Reason::PricedAsOther("aarch64-linux-gnu".to_owned()),
            Reason::OtherTarget("wasm32".to_owned()),
            Reason::IterationsMarked,
            Reason::IterationsNotMarked("it goes on at several places"),
            Reason::GrowsTooMuch { added: 300, most: 200 },
            Reason::GoneOver { left: 2 },
            Reason::Melded(melding),
            Reason::MeldTooLarge,
            Reason::VersionsOfCode,
            Reason::WaitsApart,
            Reason::HeldUp,
            Reason::NoSubgraph(super::super::Unmeldable::LeavesEarly),
            Reason::Convergent,
            Reason::Endless,
            Reason::ArmCalls("op\n\"x\"".to_owned()),
            Reason::Refused("a use is left: %x".to_owned()),
        ];
        let remark = |reason: Reason| Remark {
            pass: "fcs",
            function: "_Z1fv".to_owned(),
            subject: "what: 'both' call".to_owned(),
            places: vec![place(7), None],
            gain: reason.numbers().first().map(|(_, n)| *n),
            reason,
        };
        reasons.map(remark).to_vec()
    }

    fn remarkutil(words: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = Command::new("llvm-remarkutil-19")
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("llvm-remarkutil-19, of the package llvm-19");
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{words:?}");
        output.stdout
    }

    #[test]
    fn llvm_reads_the_remarks_and_writes_the_same() {
        let ours = Format::Yaml.write(&remarks());
        let bitstream = remarkutil(&["yaml2bitstream", "-o", "-", "-"], ours.as_bytes());
        let theirs = String::from_utf8(remarkutil(&["bitstream2yaml", "-o", "-", "-"], &bitstream)).unwrap();
        // LLVM folds long lines, and quotes only where it must.
        let plain = |text: &str| text.replace(['\'', '"'], "").split_whitespace().collect::<Vec<_>>().join(" ");
        let escaped = |text: String| text.replace("\\x0a", "\\n").replace("\\x22", "\"").replace('\\', "");
        assert_eq!(plain(&escaped(ours)), plain(&escaped(theirs)));
    }

    #[test]
    fn the_arguments_are_the_text_and_hold_each_number() {
        for remark in remarks() {
            let arguments = super::arguments(&remark);
            let text: String = arguments.iter().map(|argument| &*argument.value).collect();
            let line = remark.to_string();
            assert!(line.ends_with(&text), "{line:?} {text:?}");
            for (name, number) in remark.reason.numbers() {
                let is_it = |a: &super::Argument| a.name.to_lowercase() == name && a.value == number.to_string();
                assert!(arguments.iter().any(is_it), "{name} of {line}");
            }
        }
    }

    #[test]
    fn json_holds_all_that_a_remark_says() {
        let text = Format::Json.write(&remarks());
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), remarks().len());
        let first = &lines[0];
        assert_eq!((&first["kind"], &first["reason"]), (&"taken".into(), &"CallsFused".into()));
        assert_eq!((&first["numbers"]["fusion"], &first["words"]["guard"]), (&4.into(), &"phi".into()));
        assert_eq!((&first["places"][0]["line"], &first["places"][1]), (&7.into(), &serde_json::Value::Null));
        assert_eq!((&first["gain"], &first["function"]), (&40.into(), &"_Z1fv".into()));
        assert!(first["gain_for"].as_str().is_some_and(|models| models.contains("post-dominators")), "{text}");
        assert!(lines.iter().all(|line| line["gain"].is_null() == line["gain_for"].is_null()), "{text}");
        assert!(lines.iter().any(|line| line["words"]["callee"] == "op\n\"x\""), "{text}");
    }
}
