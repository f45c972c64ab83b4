//! What is read from rows, what is refused, and what is drawn from rows that are out of the ordinary.

use std::fs;
use std::path::Path;

use report::{CHARTS, Columns, Error, Outcome, PlotOptions, Result, Row, draw, parse_rows, plot, read_rows};

const HEADER: &str = "trace,command,region,code,locks,heuristic,warp_size,group,threads,lanes,warps,fetches,\
    thread_instructions,simt_efficiency,divergent_fetches,divergent_instructions,lower_bound,upper_bound,active_histogram,status";
const GOOD: &str = "t.bin,divide -p 2,auto,all,drop,long:n=4,2,number,2,2,1,8,10,0.625,6,6,7,10,6 2,ok";

fn parse(text: &str) -> Result<Vec<Row>> {
    parse_rows(text.as_bytes(), Path::new("rows.csv"), &[])
}

/// The message about the good row with one field replaced.
fn fault_of(column: &str, value: &str) -> String {
    let index = HEADER.split(',').position(|name| name.trim() == column).unwrap();
    let mut fields: Vec<&str> = GOOD.split(',').collect();
    fields[index] = value;
    parse(&format!("{HEADER}\n{}\n", fields.join(","))).unwrap_err().to_string()
}

#[test]
fn a_row_is_read_as_it_was_written() {
    let rows = parse(&format!("{HEADER}\n{GOOD}\n")).unwrap();
    let row = &rows[0];
    assert_eq!((row.heuristic.as_str(), row.lanes, row.warps), ("long:n=4", Some(2), Some(1)));
    let counts = row.counts().unwrap();
    assert_eq!((counts.fetches, counts.thread_instructions, counts.lower_bound), (8, 10, 7));
    assert_eq!(counts.active_histogram, [6, 2]);
    assert!((counts.efficiency_in(counts.upper_bound) - 0.5).abs() < 1e-12);
}

#[test]
fn columns_are_found_by_name_and_unknown_ones_are_ignored() {
    let turned = |line: &str, extra: &str| {
        let mut fields: Vec<&str> = line.split(',').collect();
        fields.reverse();
        format!("{extra},{}\n", fields.join(","))
    };
    let rows = parse(&(turned(HEADER, "new") + &turned(GOOD, "7"))).unwrap();
    assert_eq!(rows, parse(&format!("{HEADER}\n{GOOD}\n")).unwrap());
}

#[test]
fn conditions_choose_rows_by_any_column_of_the_file() {
    let text = format!("program,{HEADER}\nfft,{GOOD}\nradix,{GOOD}\n");
    let read = |condition: &str| {
        parse_rows(text.as_bytes(), Path::new("rows.csv"), &[condition.parse().unwrap()]).map(|rows| rows.len())
    };
    assert_eq!(read("program=radix").unwrap(), 1);
    assert_eq!(read("heuristic=long:n=4").unwrap(), 2);
    assert_eq!(read("program=lu").unwrap_err().to_string(), "rows.csv: none of its 2 rows meets all conditions");
    assert!(read("input=small").unwrap_err().to_string().contains("no column \"input\" among program, trace"));
}

#[test]
fn joined_files_are_read_as_one() {
    assert_eq!(parse(&format!("{HEADER}\n{GOOD}\n{HEADER}\n{GOOD}\n")).unwrap().len(), 2);
}

#[test]
fn a_failed_row_needs_no_numbers() {
    let rows = parse(&format!("{HEADER}\nt.bin,x,auto,all,drop,minpc,,,,,,,,,,,,,,\"deadlock, at once\"\n")).unwrap();
    assert_eq!(rows[0].outcome, Outcome::Failed("deadlock, at once".into()));
    assert_eq!(rows[0].lanes, None);
}

#[test]
fn no_fetches_have_no_efficiency() {
    let rows = parse(&format!("{HEADER}\nt.bin,x,auto,all,drop,minpc,2,,2,2,1,0,0,,0,0,0,0,0 0,ok\n")).unwrap();
    assert_eq!(rows[0].counts().unwrap().simt_efficiency, 0.0);
    let no_lanes = parse(&format!("{HEADER}\nt.bin,x,auto,all,drop,minpc,0,,2,0,0,0,0,,0,0,0,0,,ok\n")).unwrap();
    for chart in CHARTS {
        chart.draw(&no_lanes, &PlotOptions::default());
    }
}

#[test]
fn numbers_that_cannot_be_right_are_refused_with_their_place() {
    for (column, value, words) in [
        ("fetches", "eight", "\"eight\" is not a count"),
        ("fetches", "", "it is empty"),
        ("fetches", "-8", "is not a count"),
        ("simt_efficiency", "NaN", "not a number from 0 to 1"),
        ("simt_efficiency", "1.5", "not a number from 0 to 1"),
        ("simt_efficiency", "", "not a number from 0 to 1"),
        ("active_histogram", "6 x", "counts separated by spaces"),
        ("active_histogram", "", "counts separated by spaces"),
        ("active_histogram", "5 2", "sums to 7 fetches, not to 8"),
        ("active_histogram", "2 6", "makes 14 thread instructions, not 10"),
        ("active_histogram", "18446744073709551615 18446744073709551615", "sums to 36893488147419103230"),
        ("divergent_fetches", "9", "more than all 8 fetches"),
        ("divergent_instructions", "11", "more than all 10 thread instructions"),
        ("lower_bound", "9", "more than the 8 fetches that sufficed"),
        ("upper_bound", "7", "less than the 8 fetches that were needed"),
        ("threads", "two", "is not a count"),
        ("status", "", "must be \"ok\" or say what went wrong"),
        ("heuristic", "", "must name what the row is about"),
    ] {
        let message = fault_of(column, value);
        assert!(message.starts_with(&format!("rows.csv: line 2, column {column}: ")), "{message}");
        assert!(message.contains(words), "{column}={value}: {message}");
    }
}

#[test]
fn tables_that_are_none_are_refused_with_a_way_out() {
    let message = |text: &str| parse(text).unwrap_err().to_string();
    for empty in ["", "\n\n", HEADER] {
        assert!(matches!(parse(empty), Err(Error::Empty { .. })), "{empty:?}");
    }
    assert!(message("").contains("replay --heuristic all --csv"));
    let missing = message(&format!("{}\n{GOOD}\n", HEADER.replace("fetches,", "fetched,")));
    assert!(missing.contains("line 1: there is no column \"fetches\" among trace, command"), "{missing}");
    let twice = message(&format!("{HEADER},status\n{GOOD},ok\n"));
    assert!(twice.contains("the column \"status\" occurs twice"), "{twice}");
    let cut = message(&format!("{HEADER}\n{GOOD}\nt.bin,divide"));
    assert!(cut.contains("line 3: it has 2 fields, the header has 20"), "{cut}");
    let binary = parse_rows(&b"\xff\xfe\x00\x01,\n"[..], Path::new("rows.csv"), &[]).unwrap_err().to_string();
    assert!(binary.contains("line 1") && binary.contains("not text"), "{binary}");
}

#[test]
fn files_that_cannot_be_opened_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let absent = read_rows(&folder.path().join("none.csv")).unwrap_err().to_string();
    assert!(absent.contains("none.csv: cannot open") && absent.contains("replay --csv"), "{absent}");
    let directory = read_rows(folder.path()).unwrap_err().to_string();
    assert!(directory.contains("cannot open"), "{directory}");
}

#[test]
fn what_cannot_be_plotted_names_what_can() {
    let rows = parse(&format!("{HEADER}\n{GOOD}\n")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let message = |rows: &[Row], kind, name: &str| {
        plot(rows, kind, &PlotOptions::default(), &folder.path().join(name)).unwrap_err().to_string()
    };
    let gif = message(&rows, None, "a.gif");
    assert!(gif.contains("no chart can be written as .gif: charts can be written as .svg, .pdf, .png"), "{gif}");
    assert!(message(&rows, None, "a").contains("has no extension"));
    let pie = message(&rows, Some("pie"), "a.svg");
    let kinds = CHARTS.iter().map(|chart| chart.name()).collect::<Vec<_>>().join(", ");
    assert_eq!(pie, format!("there is no chart named \"pie\": choose one of {kinds}"));
    assert!(kinds.starts_with("efficiency, fetches, divergent, "));
    assert!(message(&[], None, "a.svg").contains("no rows to draw"));
    let shares = PlotOptions { shares: true, ..PlotOptions::default() };
    let refused = plot(&rows, Some("width"), &shares, &folder.path().join("a.svg")).unwrap_err();
    assert!(refused.is_of_request());
    assert_eq!(
        refused.to_string(),
        "cannot draw shares in a chart of kind width: leave out --shares, or choose a kind that can (divergent)"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn rows_out_of_the_ordinary_are_drawn_with_no_text_cut_off_or_covered() {
    let most = u64::MAX;
    let long = "a_name_without_a_break".repeat(12);
    let histogram = vec!["1"; 1024].join(" ");
    let instructions: u64 = (1..=1024).sum();
    let tables = [
        // Nothing ran.
        "t.bin,x,auto,all,drop,minpc,2,number,2,2,1,0,0,,0,0,0,0,0 0,ok\n".to_owned(),
        // The largest counts there are.
        format!("t.bin,x,auto,all,drop,minpc,1,number,1,1,1,{most},{most},1,0,0,{most},{most},{most},ok\n"),
        // One fetch beside the largest counts.
        format!("t.bin,x,auto,all,drop,minpc,1,number,1,1,1,1,1,1,0,0,0,{most},1,ok\n"),
        // A thousand lanes.
        format!("t.bin,x,auto,all,drop,ipdom,1024,number,1024,1024,1,1024,{instructions},0.5,1023,1,1024,{instructions},{histogram},ok\n"),
        // Names as long and as odd as can be.
        format!("{long},{long},{long},{long},{long},{long},2,{long},2,2,1,8,10,0.625,6,6,7,10,6 2,ok\n"),
        format!("t.bin,x,auto,all,drop,minpc,,,,,,,,,,,,,,{long}\n"),
        "t.bin,<&\">\u{1}\u{4e2d}\u{1f600} x,auto,all,drop,<&\"\u{7}>:\u{4e2d}=\u{1f600},2,number,2,2,1,8,10,0.625,6,6,7,10,6 2,ok\n"
            .replace('"', "\"\"")
            .split(',')
            .map(|field| format!("\"{}\"", field.trim_end()))
            .collect::<Vec<_>>()
            .join(",")
            + "\n",
    ];
    // Each alone, then all as panels of one chart.
    let all = tables.concat();
    for table in tables.iter().chain([&all]) {
        let rows = parse(&format!("{HEADER}\n{table}")).unwrap();
        for chart in CHARTS {
            for columns in [Columns::One, Columns::Two] {
                // As drawn, were it not refused for too few rows.
                let picture = chart.draw(&rows, &PlotOptions { columns, ..PlotOptions::default() });
                let texts: Vec<_> = picture.texts().collect();
                for (i, text) in texts.iter().enumerate() {
                    let [left, top, right, bottom] = text.extent();
                    let within = left >= 0.0 && top >= 0.0 && right <= picture.width && bottom <= picture.height;
                    assert!(within, "{} {columns:?}: {:?} is cut off", chart.name(), text.text);
                    for other in &texts[i + 1..] {
                        let [l, t, r, b] = other.extent();
                        assert!(
                            right <= l || r <= left || bottom <= t || b <= top,
                            "{} {columns:?}: {:?} and {:?} cover each other",
                            chart.name(),
                            text.text,
                            other.text
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_title_of_a_speed_up_names_both_programs() {
    let row =
        |trace: &str, command: &str| format!("{trace},{command},auto,all,drop,minpc,2,,2,2,1,1,2,1,0,0,1,2,0 1,ok\n");
    let rows = [row("a.bin", "builds/fft.none -p 2"), row("b.bin", "builds/fft.fcs -p 2")].concat();
    let rows = parse(&format!("{HEADER}\n{rows}")).unwrap();
    let picture = draw(&rows, Some("speedup"), &PlotOptions::default()).unwrap();
    let title = picture.texts().next().map(|text| text.text.clone());
    assert_eq!(title.as_deref(), Some("fft.none -p 2 and fft.fcs -p 2 · 2 lanes"));
}
