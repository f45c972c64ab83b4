//! How a page is used: its address says what is shown, commands can be copied, keys and screen readers come everywhere,
//! and paper shows what is folded away.

use std::path::Path;

use serde_json::json;

use crate::chromium::Chromium;
use crate::{Fft, assert_quiet, browser};

/// What keeps a reader with a keyboard or a screen reader from a page.
const FAULTS: &str = include_str!("access.js");

#[test]
fn a_keyboard_and_a_screen_reader_come_everywhere() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8", "10"]);
    for (options, traces) in [(&["--syntax", "intel"][..], &["8.bin"][..]), (&[], &["10.bin", "8.bin"])] {
        let page = fft.page(options, traces);
        browser.screen(1280, 900, false);
        browser.open(&page);
        assert_eq!(browser.evaluate(FAULTS), json!([]), "{traces:?}");
    }
    // The check itself: a page with faults has them.
    browser.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<button></button><h5 id=main>x</h5><a href=\"#nowhere\">y</a>')",
    );
    let faults = browser.evaluate(FAULTS);
    assert!(faults.as_array().unwrap().len() >= 4, "{faults}");
}

#[test]
fn each_section_has_a_link_and_the_address_says_what_is_shown() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8"]);
    let page = fft.page(&["--model", "minsp-pc", "--models", "minsp-pc,ipdom,lee"], &["8.bin"]);
    browser.screen(1280, 900, false);
    browser.open(&page);
    let links = "[...document.querySelectorAll('main section[id]')].filter((s) => \
                 s.querySelector('a.anchor')?.getAttribute('href') !== `#${s.id}`).map((s) => s.id)";
    assert_eq!(browser.evaluate(links), json!([]), "every section can be linked to");
    browser.click("#models a.anchor");
    assert_eq!(browser.evaluate("location.hash"), "#models");
    // Another model: the address has it, links keep it, and who opens the address sees it.
    browser.evaluate(
        "(() => { const s = document.querySelector('#model'); s.value = [...s.options].find((o) => o.text.startsWith('ipdom')).value; \
         s.dispatchEvent(new Event('change')); })()",
    );
    assert_eq!(browser.evaluate("location.hash"), "#models?model=ipdom");
    let lost = browser.evaluate("document.querySelector('[data-number=lost_slots]').textContent");
    browser.click("#source a.anchor");
    assert_eq!(browser.evaluate("location.hash"), "#source?model=ipdom");
    reopen(&mut browser, &page, "#source?model=ipdom");
    assert_eq!(browser.evaluate("document.querySelector('[data-number=lost_slots]').textContent"), lost);
    assert_eq!(browser.evaluate("document.querySelector('#model').selectedOptions[0].text.split(' ')[0]"), "ipdom");
    let seen = "Math.abs(document.querySelector('#source').getBoundingClientRect().top) < innerHeight";
    assert_eq!(browser.evaluate(seen), true, "the section that the address names is on the screen");
    browser.click("#model-back");
    assert_eq!(browser.evaluate("location.hash"), "#source");
    // An address that means nothing changes nothing.
    reopen(&mut browser, &page, "#nowhere?model=none&side=x");
    assert_ne!(browser.evaluate("document.querySelector('[data-number=lost_slots]').textContent"), lost);
}

#[test]
fn of_two_programs_the_address_says_which_is_shown() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8", "10"]);
    let page = fft.page_of(&["10.bin", "8.bin"]);
    browser.screen(1280, 900, false);
    browser.open(&page);
    browser.click("#show-before");
    browser.click("#divergent-shares");
    let address = browser.evaluate("location.hash").as_str().unwrap().to_owned();
    assert_eq!(address, "#?side=before&divergent=shares");
    reopen(&mut browser, &page, &address);
    for pressed in ["#show-before", "#divergent-shares"] {
        assert_eq!(browser.evaluate(&format!("document.querySelector('{pressed}').ariaPressed")), "true", "{pressed}");
    }
}

#[test]
fn commands_can_be_copied_and_paper_shows_what_is_folded_away() {
    let Some(mut browser) = browser() else { return };
    let fft = Fft::traced(&["8"]);
    let page = fft.page(&[], &["8.bin"]);
    browser.screen(1280, 900, false);
    browser.open(&page);
    let made_by = "document.querySelector('#foot code.command').textContent";
    let made_by = browser.evaluate(made_by).as_str().unwrap().to_owned();
    assert!(made_by.starts_with("lockstep report -o ") && made_by.ends_with("8.bin"), "{made_by}");
    browser.evaluate(
        "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (t) => (window.copied = t) } }), 0",
    );
    browser.click("#foot button.copy");
    assert_eq!(browser.evaluate("window.copied"), made_by);
    // Every command of the page has a button that copies it.
    let without = "[...document.querySelectorAll('code')].filter((c) => /^(replay|trace|lockstep) /.test(c.textContent) && \
                   c.parentElement.querySelector('button.copy') === null).map((c) => c.textContent)";
    assert_eq!(browser.evaluate(without), json!([]));
    let folded = "document.querySelectorAll('details:not([open])').length";
    let before = browser.evaluate(folded);
    assert_ne!(before, 0);
    browser.evaluate("dispatchEvent(new Event('beforeprint'))");
    assert_eq!(browser.evaluate(folded), 0);
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "print" }));
    let shown = "[...document.querySelectorAll('nav, button, .anchor, input')].filter((e) => e.checkVisibility() && !e.matches('.sort, .flame button')).length";
    assert_eq!(browser.evaluate(shown), 0, "nothing on paper waits to be pressed");
    browser.call("Emulation.setEmulatedMedia", json!({ "media": "" }));
    browser.evaluate("dispatchEvent(new Event('afterprint'))");
    assert_eq!(browser.evaluate(folded), before);
    assert_quiet(&browser, &page);
}

/// Opens a page anew under this address.
fn reopen(browser: &mut Chromium, page: &Path, hash: &str) {
    // Another hash alone would be a way on the same page.
    browser.call("Page.navigate", json!({ "url": "about:blank" }));
    browser.open(Path::new(&format!("{}{hash}", page.display())));
    browser.settle();
}
