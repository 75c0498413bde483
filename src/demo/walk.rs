//! Takes the walk: carries out the table's acts over real sockets, prints what was sent and what
//! came back, and holds each answer to what was written down for it. Never decides what is right.

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::compare::Comparison;
use super::dealer::{Dealer, Received};
use super::ground::Ground;
use super::screen::{Screen, Tone, lay_out};
use super::script::{Act, Answer, Heard, Step, To};
use super::wire::{self, Head};

/// What the walk goes through.
pub(super) struct Walk<'a, 'w> {
    screen: &'a mut Screen<'w>,
    ground: &'a Ground,
    dealer: &'a Dealer,
    gateway: SocketAddr,
    admin: SocketAddr,
    tally: Tally,
    error_ids: HashSet<String>,
    retry_after_ms: u64,
    open: Option<Open>,
    last_good: &'static str,
}

/// How many answers there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    /// Those that were what the rules say.
    pub(super) right: usize,
    /// All.
    pub(super) all: usize,
}

/// A stream that has not ended.
struct Open {
    answer: wire::Answer,
    opened: Instant,
    buffer: Vec<u8>,
    events: Vec<String>,
}

impl<'a, 'w> Walk<'a, 'w> {
    /// A walk from a gateway's address and its admin socket's.
    pub(super) fn new(
        screen: &'a mut Screen<'w>,
        ground: &'a Ground,
        dealer: &'a Dealer,
        gateway: SocketAddr,
        admin: SocketAddr,
    ) -> Self {
        Self {
            screen,
            ground,
            dealer,
            gateway,
            admin,
            tally: Tally::default(),
            error_ids: HashSet::new(),
            retry_after_ms: 0,
            open: None,
            last_good: "",
        }
    }

    /// Carries out every act.
    ///
    /// # Errors
    /// Only when it cannot be printed or the configuration cannot be written: a request that fails
    /// is an answer that is not what the rules say.
    pub(super) async fn take(mut self, script: &[Act]) -> io::Result<Tally> {
        for act in script {
            match act {
                Act::Chapter(title) => {
                    let bar = "=".repeat(title.len());
                    self.screen.line("")?;
                    self.screen.tell(Tone::Title, title)?;
                    self.screen.tell(Tone::Title, &bar)?;
                }
                Act::Call(step) => self.call(step).await?,
                Act::Wait => {
                    let ms = self.retry_after_ms;
                    self.screen.line("")?;
                    self.screen
                        .line(&format!("   ... waiting {ms} ms, as told ..."))?;
                    sleep(Duration::from_millis(ms)).await;
                }
                Act::Open(step) => self.open(step).await?,
                Act::Finish(events) => self.finish(events).await?,
                Act::Rewrite(version) => {
                    let addition = version.addition();
                    self.ground.write(addition)?;
                    if *version == super::ground::Version::Grown {
                        self.last_good = addition;
                    }
                    self.screen.line("")?;
                    let file = self.ground.file();
                    let told = format!("   To {} is added:", file.display());
                    self.screen.line(&told)?;
                    self.screen.marked("+", addition.trim_start())?;
                }
                Act::Restore => {
                    self.ground.write(self.last_good)?;
                    self.screen.line("")?;
                    self.screen
                        .line("   The last good file is written back as it was.")?;
                }
            }
        }
        Ok(self.tally)
    }

    async fn call(&mut self, step: &Step) -> io::Result<()> {
        self.introduce(step)?;
        let mut comparison = Comparison::default();
        let exchanged = async {
            let mut answer = wire::send(self.address(step), &self.request(step)).await?;
            let body = answer.rest().await?;
            Ok::<_, io::Error>((answer.head, body))
        };
        match exchanged.await {
            Ok((head, body)) => {
                if !step.is_brief {
                    self.show(&head)?;
                    self.screen.marked("<", "")?;
                    let text = String::from_utf8_lossy(&body);
                    self.screen.marked("<", &lay_out(&text))?;
                }
                comparison.head(step.status, step.answer_headers, &head);
                match step.answer {
                    Answer::Json(json) | Answer::Event(json) => comparison.json(json, &body),
                    Answer::Lines(lines) => comparison.lines(lines, &body),
                }
            }
            Err(error) => comparison.differ("answer", &"one", &error),
        }
        self.heard(step, &mut comparison)?;
        self.judge(comparison, step.is_brief)
    }

    async fn open(&mut self, step: &Step) -> io::Result<()> {
        self.introduce(step)?;
        self.dealer.hold(true);
        let mut comparison = Comparison::default();
        let opened = Instant::now();
        match wire::send(self.address(step), &self.request(step)).await {
            Ok(answer) => {
                self.show(&answer.head)?;
                self.screen.marked("<", "")?;
                comparison.head(step.status, step.answer_headers, &answer.head);
                let mut open = Open {
                    answer,
                    opened,
                    buffer: Vec::new(),
                    events: Vec::new(),
                };
                let first = self.event(&mut open).await?;
                match (first, step.answer) {
                    (Ok(true), Answer::Event(json)) => {
                        let event = open.events.first().map(String::as_bytes);
                        comparison.json(json, event.unwrap_or_default());
                    }
                    (first, _) => comparison.differ("body", &"an event", &format!("{first:?}")),
                }
                self.open = Some(open);
            }
            Err(error) => comparison.differ("answer", &"one", &error),
        }
        self.heard(step, &mut comparison)?;
        self.judge(comparison, false)
    }

    async fn finish(&mut self, expected: &[&str]) -> io::Result<()> {
        self.title("The stream again: now the dealer goes on")?;
        self.screen.line("")?;
        self.dealer.hold(false);
        let mut comparison = Comparison::default();
        match self.open.take() {
            Some(mut open) => {
                loop {
                    match self.event(&mut open).await? {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(error) => {
                            comparison.differ("body", &"a clean end", &error);
                            break;
                        }
                    }
                }
                let events = open.events.len();
                if events != expected.len() {
                    comparison.differ("events", &expected.len(), &events);
                }
                for (expected, event) in expected.iter().zip(&open.events) {
                    comparison.json(expected, event.as_bytes());
                }
            }
            None => comparison.differ("body", &"an open stream", &"none"),
        }
        self.judge(comparison, false)
    }

    /// Reads and prints the next event; false at the stream's clean end. The inner error is the
    /// stream's.
    async fn event(&mut self, open: &mut Open) -> io::Result<io::Result<bool>> {
        let end = loop {
            if let Some(end) = open.buffer.windows(2).position(|it| it == b"\n\n") {
                break end;
            }
            match open.answer.piece().await {
                Ok(Some(piece)) => open.buffer.extend(piece),
                Ok(None) => return Ok(Ok(false)),
                Err(error) => return Ok(Err(error)),
            }
        };
        let rest = open.buffer.split_off(end + 2);
        let event = std::mem::replace(&mut open.buffer, rest);
        let event = String::from_utf8_lossy(&event);
        let data = event.trim_end().strip_prefix("data: ").unwrap_or(&event);
        let passed = open.opened.elapsed().as_millis();
        let arrived = format!("    event {} after {} ms", open.events.len() + 1, passed);
        self.screen.tell(Tone::Quiet, &arrived)?;
        self.screen
            .marked("<", &format!("data: {}", lay_out(data)))?;
        open.events.push(data.to_owned());
        Ok(Ok(true))
    }

    fn title(&mut self, title: &str) -> io::Result<()> {
        self.screen.line("")?;
        let title = format!("{:2}. {title}", self.tally.all + 1);
        self.screen.tell(Tone::Title, &title)
    }

    fn introduce(&mut self, step: &Step) -> io::Result<()> {
        if step.is_brief {
            return self.title(&format!("A call to {} that is admitted", step.path));
        }
        self.title(step.title)?;
        self.screen.line(&format!("    {}", step.rule))?;
        self.screen
            .tell(Tone::Quiet, &format!("    [{}]", step.source))?;
        self.screen.line("")?;
        let request = self.request(step);
        self.screen.marked(">", &String::from_utf8_lossy(&request))
    }

    fn show(&mut self, head: &Head) -> io::Result<()> {
        self.screen.line("")?;
        self.screen.marked("<", &head.line)?;
        for (name, value) in &head.headers {
            self.screen.marked("<", &format!("{name}: {value}"))?;
        }
        Ok(())
    }

    /// Holds what reached the dealer to what was to reach it.
    fn heard(&mut self, step: &Step, comparison: &mut Comparison) -> io::Result<()> {
        let received = self.dealer.take_received();
        if !step.is_brief && step.to != To::Admin {
            self.screen.line("")?;
            match &*received {
                [] => self.screen.line("    The dealer received nothing.")?,
                all => {
                    for one in all {
                        self.show_received(one, step)?;
                    }
                }
            }
        }
        match (step.heard, &*received) {
            (Heard::Nothing, []) => {}
            (
                Heard::Call {
                    versions,
                    extensions,
                },
                [one],
            ) => {
                if one.versions != versions {
                    let (expected, got) = (format!("{versions:?}"), format!("{:?}", one.versions));
                    comparison.differ("the dealer's A2A-Version", &expected, &got);
                }
                if one.extensions != extensions {
                    let expected = format!("{extensions:?}");
                    let got = format!("{:?}", one.extensions);
                    comparison.differ("the dealer's A2A-Extensions", &expected, &got);
                }
                if one.body != step.body {
                    comparison.differ("the dealer's body", &"the same bytes", &"others");
                }
            }
            (heard, all) => {
                let expected = format!("{heard:?}");
                comparison.differ("calls at the dealer", &expected, &all.len());
            }
        }
        Ok(())
    }

    fn show_received(&mut self, received: &Received, step: &Step) -> io::Result<()> {
        let body = if received.body == step.body {
            "the same body"
        } else {
            "another body"
        };
        self.screen
            .line(&format!("    The dealer received {body}, and:"))?;
        for (name, lines) in [
            ("A2A-Version", &received.versions),
            ("A2A-Extensions", &received.extensions),
        ] {
            if lines.is_empty() {
                self.screen.line(&format!("      no {name}"))?;
            }
            for line in lines {
                self.screen.line(&format!("      {name}: {line}"))?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, mut comparison: Comparison, is_brief: bool) -> io::Result<()> {
        comparison.finish();
        if let Some(ms) = comparison.retry_after_ms {
            self.retry_after_ms = ms;
        }
        if let Some(id) = comparison.error_id.take()
            && !self.error_ids.insert(id)
        {
            comparison.differ("error_id", &"a new one", &"one that was used before");
        }
        self.tally.all += 1;
        if comparison.differences.is_empty() {
            self.tally.right += 1;
            return self.screen.tell(Tone::Good, "    ok");
        }
        if is_brief {
            self.screen
                .line("    (an admitted call, not printed in full)")?;
        }
        for difference in &comparison.differences {
            self.screen.tell(
                Tone::Bad,
                &format!("    NOT WHAT THE RULES SAY: {difference}"),
            )?;
        }
        Ok(())
    }

    fn address(&self, step: &Step) -> SocketAddr {
        match step.to {
            To::Gateway => self.gateway,
            To::Dealer => self.dealer.address(),
            To::Admin => self.admin,
        }
    }

    /// The bytes that are sent.
    fn request(&self, step: &Step) -> Vec<u8> {
        let mut request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\n",
            step.path,
            self.address(step)
        );
        if !step.body.is_empty() {
            request.push_str("Content-Type: application/json\r\n");
        }
        request.push_str(&format!("Content-Length: {}\r\n", step.body.len()));
        for (name, value) in step.headers {
            request.push_str(format!("{name}: {value}").trim_end());
            request.push_str("\r\n");
        }
        request.push_str("\r\n");
        request.push_str(step.body);
        request.into_bytes()
    }
}
