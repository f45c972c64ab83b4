//! A headless Chromium, driven over its DevTools protocol: messages of JSON, each ended by a zero byte, through two
//! pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a page may take for one thing before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one page.
pub(crate) struct Chromium {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    sent: u64,
    events: Vec<Value>,
    /// Its profile; removed with it.
    _folder: tempfile::TempDir,
}

impl Chromium {
    /// A new browser, if it is installed.
    pub(crate) fn start() -> Option<Chromium> {
        let version = Command::new("chromium").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        // The pipes are to be its files 3 and 4; the shell makes them of its own 0 and 1.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec chromium \"$@\" 3<&0 4>&1 0</dev/null 1>&2 2>/dev/null",
                "chromium",
                "--headless",
                "--no-sandbox",
            ])
            .args(["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser = Chromium { process, to, from, session: None, sent: 0, events: Vec::new(), _folder: folder };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Runtime", "Log", "Network", "Page"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol; its result.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "chromium has ended at {method}");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["id"] == json!(self.sent) {
                let error = answer["error"].take();
                return if error.is_null() { Ok(answer["result"].take()) } else { Err(error) };
            }
            self.events.push(answer);
        }
    }

    /// Opens a file; how long it took until the page said that it was ready.
    pub(crate) fn open(&mut self, file: &Path) -> Duration {
        let begun = Instant::now();
        self.call("Page.navigate", json!({ "url": format!("file://{}", file.display()) }));
        // Until then the page may not be there to be asked.
        let ready = json!({ "expression": "document.documentElement?.dataset.ready === 'yes'", "returnByValue": true });
        while self.try_call("Runtime.evaluate", ready.clone()).map(|a| a["result"]["value"] == true) != Ok(true) {
            assert!(begun.elapsed() < PATIENCE, "the page never became ready: {:?}", self.errors());
            std::thread::sleep(Duration::from_millis(5));
        }
        begun.elapsed()
    }

    /// Opens a file that says nothing of being ready: a picture, or a page of another maker.
    pub(crate) fn open_any(&mut self, file: &Path) {
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", json!({ "url": url }));
        let begun = Instant::now();
        let ready = format!(
            "location.href === {} && document.readyState === 'complete' && \
             (!document.getElementById('data') || document.documentElement.dataset.ready === 'yes')",
            json!(url)
        );
        let ready = json!({ "expression": ready, "returnByValue": true });
        while self.try_call("Runtime.evaluate", ready.clone()).map(|a| a["result"]["value"] == true) != Ok(true) {
            assert!(begun.elapsed() < PATIENCE, "{url} was never there: {:?}", self.errors());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What a JavaScript expression gives.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let options = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", options);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Clicks with the mouse into the middle of the first element that the selector finds, and waits until its effects
    /// are drawn.
    pub(crate) fn click(&mut self, selector: &str) {
        self.settle();
        let middle = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const b = e.getClientRects()[0]; return [b.left + b.width / 2, b.top + b.height / 2]; }})()",
            json!(selector)
        ));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
        self.settle();
    }

    /// Presses a key where the focus is.
    pub(crate) fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
        self.settle();
    }

    /// Moves the mouse.
    pub(crate) fn point_at(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": x, "y": y }));
        self.settle();
    }

    /// Waits until what is to be scrolled and drawn has been.
    pub(crate) fn settle(&mut self) {
        self.evaluate(
            "new Promise((done) => { let last = -1; const look = () => { if (scrollY === last) done(true); \
             else { last = scrollY; setTimeout(look, 120); } }; requestAnimationFrame(look); })",
        );
    }

    /// The window's size in pixels, and whether the reader's system is dark.
    pub(crate) fn screen(&mut self, width: u32, height: u32, dark: bool) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        self.settle();
    }

    /// The whole page, as PNG, as far down as a picture may reach.
    pub(crate) fn screenshot_of_all(&mut self, to: &Path) {
        /// More is not drawn.
        const MOST: f64 = 16_000.0;
        let size = self.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]");
        let height = size[1].as_f64().unwrap().min(MOST);
        let clip = json!({ "x": 0, "y": 0, "width": size[0], "height": height, "scale": 1 });
        let options = json!({ "format": "png", "captureBeyondViewport": true, "clip": clip });
        let shot = self.call("Page.captureScreenshot", options);
        std::fs::write(to, from_base64(shot["data"].as_str().unwrap())).unwrap();
    }

    /// What is seen, as PNG.
    pub(crate) fn screenshot(&mut self, to: &Path) {
        let shot = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        std::fs::write(to, from_base64(shot["data"].as_str().unwrap())).unwrap();
    }

    /// The page as it is printed, as PDF.
    pub(crate) fn print(&mut self, to: &Path) {
        let printed = self.call("Page.printToPDF", json!({ "printBackground": true }));
        std::fs::write(to, from_base64(printed["data"].as_str().unwrap())).unwrap();
    }

    /// Errors that the page has caused so far: exceptions, and what it or the browser wrote to the console.
    pub(crate) fn errors(&self) -> Vec<String> {
        let is_error = |e: &&Value| match e["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => e["params"]["entry"]["level"] == "error",
            Some("Runtime.consoleAPICalled") => e["params"]["type"] == "error",
            _ => false,
        };
        self.events.iter().filter(is_error).map(|e| e["params"].to_string()).collect()
    }

    /// The addresses that were asked for so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        let asked = self.events.iter().filter(|e| e["method"] == "Network.requestWillBeSent");
        asked.map(|e| e["params"]["request"]["url"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let known: Vec<u8> = text.bytes().filter(|c| *c != b'=').map(digit).collect();
    let mut bytes = Vec::with_capacity(known.len() * 3 / 4);
    for four in known.chunks(4) {
        let bits = (0..4).fold(0u32, |bits, i| bits << 6 | u32::from(four.get(i).copied().unwrap_or(0)));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
