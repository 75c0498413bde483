//! When lines reach their destination, and what happens when it fails.

use super::*;
use crate::observe::clock::Timestamp;
use crate::protocol::Outcome;

/// A sink whose bytes can be looked at, that fails or stalls on demand.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Written>>, Arc<Condvar>);

#[derive(Default)]
struct Written {
    bytes: Vec<u8>,
    broken: bool,
    /// Take only so many bytes before the next failure.
    room: Option<usize>,
    stalled: bool,
    busy: bool,
    hiccups: u32,
}

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = self.0.lock();
        written.busy = true;
        self.1.notify_all();
        self.1.wait_while(&mut written, |written| written.stalled);
        written.busy = false;
        if written.hiccups > 0 {
            written.hiccups -= 1;
            let odd = written.hiccups % 2 == 1;
            return Err(if odd {
                io::ErrorKind::Interrupted.into()
            } else {
                io::ErrorKind::WouldBlock.into()
            });
        }
        if let Some(room) = written.room.take() {
            written.broken = true;
            let bytes = bytes.get(..room).unwrap_or(bytes);
            written.bytes.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        if written.broken {
            return Err(io::ErrorKind::StorageFull.into());
        }
        written.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    fn log(&self) -> (AccessLog, Counter) {
        let dropped = Counter::default();
        let log = AccessLog::with(Some(Box::new(self.clone())), dropped.clone()).unwrap();
        (log, dropped)
    }

    fn set(&self, change: impl FnOnce(&mut Written)) {
        change(&mut self.0.lock());
        self.1.notify_all();
    }

    fn lines(&self) -> Vec<String> {
        let text = String::from_utf8(self.0.lock().bytes.clone()).unwrap();
        text.lines().map(str::to_owned).collect()
    }
}

const LONG: Duration = Duration::from_secs(30);

fn write(pen: &Pen, id: &str) {
    pen.write(&Line {
        request_id: Some(id.as_bytes()),
        ..Line::new(Timestamp::UNIX_EPOCH, Outcome::Ok)
    });
}

fn manner(to: &Destination) -> Manner {
    Manner {
        to: to.clone(),
        ..Manner::default()
    }
}

fn start(to: &Destination) -> io::Result<AccessLog> {
    AccessLog::start(&manner(to), Counter::default())
}

fn turn(log: &AccessLog, to: &Destination) {
    let switch = log.switch();
    switch.apply(switch.prepare(&manner(to)).unwrap());
}

fn id(line: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    Some(value["request_id"].as_str()?.to_owned())
}

#[test]
fn lines_of_many_workers_arrive_whole_and_in_each_ones_order() {
    let paper = Paper::default();
    let (log, dropped) = paper.log();
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let pen = log.pen();
            thread::spawn(move || {
                for line in 0..1000 {
                    write(&pen, &format!("{worker} {line}"));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
    drop(log);
    let mut next = [0; 4];
    for line in paper.lines() {
        let id = id(&line).unwrap();
        let (worker, line) = id.split_once(' ').unwrap();
        let worker: usize = worker.parse().unwrap();
        assert_eq!(line, next[worker].to_string());
        next[worker] += 1;
    }
    assert_eq!((next, dropped.get()), ([1000; 4], 0));
}

#[test]
fn lines_come_without_being_asked_for() {
    let paper = Paper::default();
    let (log, _) = paper.log();
    let pen = log.pen();
    write(&pen, "1");
    let mut written = paper.0.lock();
    let empty = |written: &mut Written| written.bytes.is_empty();
    let waited = paper.1.wait_while_for(&mut written, empty, LONG);
    drop(written);
    // The sink notifies when it is called and holds its lock until it has written.
    assert!(!waited.timed_out() || !paper.lines().is_empty());
}

#[test]
fn a_pen_may_go_before_its_lines_are_written() {
    let paper = Paper::default();
    let (log, _) = paper.log();
    write(&log.pen(), "1");
    assert!(log.flush(LONG));
    assert_eq!(paper.lines().len(), 1);
    assert!(log.flush(LONG));
    assert!(log.desk.sheets.lock().is_empty());
}

#[test]
fn a_stalled_sink_drops_lines_and_never_stops_a_worker() {
    let paper = Paper::default();
    paper.set(|written| written.stalled = true);
    let (log, dropped) = paper.log();
    let pen = log.pen();
    write(&pen, "first");
    assert!(!log.flush(Duration::from_millis(1)));
    let mut written = paper.0.lock();
    paper.1.wait_while(&mut written, |written| !written.busy);
    drop(written);

    let text = "x".repeat(128);
    let count = 20_000;
    for _ in 0..count {
        write(&pen, &text);
    }
    let waiting = pen.sheet.lock().bytes.len();
    assert!(waiting <= FULL && waiting > FULL - 1000, "{waiting}");
    assert!(pen.sheet.lock().bytes.capacity() <= 2 * FULL);
    let lost = dropped.get();
    assert!(lost > 0);

    paper.set(|written| written.stalled = false);
    assert!(log.flush(LONG));
    let lines = paper.lines();
    assert_eq!(lines.len() as u64, 1 + count - lost);
    assert!(lines.iter().all(|line| id(line).is_some()));
}

#[test]
fn a_failing_sink_is_counted_and_a_torn_line_stays_alone() {
    let paper = Paper::default();
    let (log, dropped) = paper.log();
    let pen = log.pen();
    write(&pen, "1");
    assert!(log.flush(LONG));
    let whole = paper.0.lock().bytes.len();

    // The disk takes one line and a half.
    paper.set(|written| written.room = Some(whole + whole / 2));
    for id in ["2", "3", "4"] {
        write(&pen, id);
    }
    assert!(log.flush(LONG));
    assert_eq!(dropped.get(), 2);
    write(&pen, "5");
    assert!(log.flush(LONG));
    assert_eq!(dropped.get(), 3);

    paper.set(|written| written.broken = false);
    write(&pen, "6");
    assert!(log.flush(LONG));
    let ids: Vec<_> = paper.lines().iter().map(|line| id(line)).collect();
    let some = |id: &str| Some(id.to_owned());
    assert_eq!(ids, [some("1"), some("2"), None, some("6")]);
    assert_eq!(dropped.get(), 3);
}

#[test]
fn an_interrupted_or_slow_pipe_loses_nothing() {
    let paper = Paper::default();
    paper.set(|written| written.hiccups = 5);
    let (log, dropped) = paper.log();
    write(&log.pen(), "1");
    assert!(log.flush(LONG));
    assert_eq!((paper.lines().len(), dropped.get()), (1, 0));
}

#[test]
fn a_file_is_appended_to_and_can_be_rotated_and_switched_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, "before\n").unwrap();
    let to = Destination::File(path.clone());
    let log = start(&to).unwrap();
    let pen = log.pen();
    write(&pen, "1");
    assert!(log.flush(LONG));

    let rotated = folder.path().join("access.log.1");
    std::fs::rename(&path, &rotated).unwrap();
    write(&pen, "2");
    log.switch().reopen().unwrap();
    assert!(log.flush(LONG));
    write(&pen, "3");
    assert!(log.flush(LONG));

    let missing = Destination::File(folder.path().join("no/such/folder"));
    assert!(log.switch().prepare(&manner(&missing)).is_err());
    turn(&log, &Destination::Off);
    write(&pen, "4");
    turn(&log, &to);
    write(&pen, "5");
    drop(log);
    write(&pen, "6");

    let ids = |path| -> Vec<_> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| id(line).unwrap_or_default())
            .collect()
    };
    assert_eq!(ids(&rotated), ["", "1", "2"]);
    assert_eq!(ids(&path), ["3", "5"]);
    assert!(start(&missing).is_err());
}

#[test]
fn a_line_between_switching_on_and_the_writer_knowing_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = start(&Destination::Off).unwrap();
    let pen = log.pen();
    // What `Switch::apply` does first.
    log.desk.on.store(true, Ordering::Relaxed);
    write(&pen, "1");
    assert!(log.flush(LONG));
    turn(&log, &Destination::File(path.clone()));
    drop(log);
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.lines().filter_map(id).next().as_deref(), Some("1"));
}

#[test]
fn stdout_can_be_opened() {
    let log = start(&Destination::Stdout).unwrap();
    assert!(log.flush(LONG));
}

#[test]
fn the_spelling_can_be_changed_and_the_same_file_is_not_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let to = Destination::File(path.clone());
    let log = start(&to).unwrap();
    let pen = log.pen();
    write(&pen, "1");
    assert!(log.flush(LONG));
    // A new file of this name would be seen by whoever opened it.
    std::fs::rename(&path, folder.path().join("moved")).unwrap();
    let combined = Manner {
        spelling: Spelling::Combined,
        ..manner(&to)
    };
    let switch = log.switch();
    switch.apply(switch.prepare(&combined).unwrap());
    write(&pen, "2");
    drop(log);
    assert!(!path.exists());
    let text = std::fs::read_to_string(folder.path().join("moved")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(id(lines[0]).as_deref(), Some("1"));
    assert!(lines[1].ends_with("\"2\" ok"), "{text}");
}

#[test]
fn of_lines_that_went_well_a_share_is_written_and_says_so() {
    let paper = Paper::default();
    let (log, dropped) = paper.log();
    let pen = log.pen();
    let tenth = Manner {
        ok_millionths: 100_000,
        ..Manner::default()
    };
    // The paper stays: there is nothing to open for it.
    log.desk.set(&tenth);
    let all = 2000;
    for number in 0..all {
        write(&pen, &number.to_string());
        pen.write(&Line {
            request_id: Some(number.to_string().as_bytes()),
            ..Line::new(Timestamp::UNIX_EPOCH, Outcome::RateLimited)
        });
    }
    assert!(log.flush(LONG));
    let lines = paper.lines();
    let (ok, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains("\"ok\""));
    assert_eq!(others.len(), all);
    assert!((all / 20..all / 5).contains(&ok.len()), "{}", ok.len());
    assert!(ok.iter().all(|line| line.contains("\"sampled\":10}")));
    assert!(!others.iter().any(|line| line.contains("sampled")));
    assert_eq!(dropped.get(), 0);
    log.desk.set(&Manner::default());
    write(&pen, "all again");
    assert!(log.flush(LONG));
    assert_eq!(paper.lines().len(), lines.len() + 1);
}
