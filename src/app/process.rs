//! Decides what the gateway does as a process: what signals, an operator's word and a thread that ended
//! too early do, and when the service manager hears of it.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::notify::{self, Manager};
use super::{Gateway, Inherited, Options, StartError};

/// Why a process that served a gateway fails.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Something of it ended before it was told to. What was in flight has been finished.
    #[error("{0} ended before it was told to: the gateway was not whole any more")]
    Fallen(Box<str>),
}

/// Why the gateway leaves.
enum Cause {
    /// By a signal.
    Signal,
    /// By an operator's word, on the admin socket.
    Word,
    /// By itself: this is gone.
    Fallen(Box<str>),
}

/// What a signal says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Reload,
    Rotated,
    Stop,
}

/// The signals that a gateway heeds.
struct Signals {
    hangup: Signal,
    rotated: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn heed() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            rotated: signal(SignalKind::user_defined1())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> Heard {
        tokio::select! {
            _ = self.hangup.recv() => Heard::Reload,
            _ = self.rotated.recv() => Heard::Rotated,
            _ = self.terminate.recv() => Heard::Stop,
            _ = self.interrupt.recv() => Heard::Stop,
        }
    }
}

/// Serves until told to stop: SIGHUP reloads; SIGUSR1 opens the access log anew; SIGTERM, SIGINT and `POST /drain` drain, and a second
/// signal cuts. After an operator's word the first signal is no second one: whoever asked for the drain
/// sends it as well.
///
/// # Errors
/// When it does not start, or does not stay whole.
pub async fn serve(options: Options, inherited: Inherited) -> Result<(), ServeError> {
    let mut signals = Signals::heed().map_err(StartError::Thread)?;
    let gateway = Gateway::start_with(options, inherited)?;
    let mut manager = Manager::default();
    manager.ready(&gateway);
    let well = notify::keep_well(gateway.pulse(), notify::watchdog());
    let cause = tokio::select! {
        cause = run(&gateway, &mut manager, &mut signals) => cause,
        never = well => match never {},
    };
    gateway.stop();
    match cause {
        Cause::Signal | Cause::Word => Ok(()),
        Cause::Fallen(what) => Err(ServeError::Fallen(what)),
    }
}

/// Serves, then drains.
async fn run(gateway: &Gateway, manager: &mut Manager, signals: &mut Signals) -> Cause {
    let cause = until_told(gateway, manager, signals).await;
    let mut to_cut = match &cause {
        Cause::Signal => 1,
        Cause::Word | Cause::Fallen(_) => 2,
    };
    manager.stopping(gateway);
    let again = async {
        while to_cut > 0 {
            // What is reloaded now would serve nobody.
            if signals.next().await == Heard::Stop {
                to_cut -= 1;
            }
        }
    };
    tokio::select! {
        () = gateway.drain(again) => {}
        never = manager.follow(gateway, "draining") => match never {},
    }
    cause
}

async fn until_told(gateway: &Gateway, manager: &mut Manager, signals: &mut Signals) -> Cause {
    loop {
        let heard = tokio::select! {
            heard = signals.next() => heard,
            () = gateway.asked_to_leave() => return Cause::Word,
            what = gateway.fallen() => return Cause::Fallen(what),
            never = manager.follow(gateway, "serving") => match never {},
        };
        match heard {
            Heard::Stop => return Cause::Signal,
            Heard::Rotated => gateway.reopen_access_log(),
            Heard::Reload => {
                manager.reloading();
                // The outcome is logged and counted where it happens.
                let _ = gateway.reload();
                manager.ready(gateway);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_gateway_that_is_not_whole_any_more_leaves() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("forecourt.toml");
        let configuration = "[runtime]\nworkers = 1\n\
             [listener.public]\naddress = \"127.0.0.1:0\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n[log]\naccess = \"off\"\n\
             [upstream.one]\nurl = \"http://127.0.0.1:9/\"\n\
             [endpoint.one]\npath = \"/\"\nupstream = \"one\"\n";
        std::fs::write(&file, configuration).unwrap();
        let gateway = Gateway::start(Options::new(file)).unwrap();
        assert!(gateway.readiness.is_ready());
        let watch = gateway.watch.clone();
        let (mut manager, mut signals) = (Manager::default(), Signals::heed().unwrap());
        let running = run(&gateway, &mut manager, &mut signals);
        let breaking = async {
            tokio::task::yield_now().await;
            watch.fell("a listener");
            // What comes after it is not the reason.
            watch.fell("another");
        };
        let (cause, ()) = tokio::join!(running, breaking);
        assert!(matches!(cause, Cause::Fallen(what) if &*what == "a listener"));
        assert!(!gateway.readiness.is_ready());
        // It has drained: its worker has ended in order.
        assert!(
            gateway
                .workers
                .iter()
                .all(std::thread::JoinHandle::is_finished)
        );
    }
}
