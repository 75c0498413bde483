//! `forecourt demo`: a strict dealer agent, the gateway in front of it, and a walk through the rules
//! with the real request and the real answer of each. One process, no other service.
//!
//! `table` is the walk; `asked`, `answered` and `refused` are the texts in it; `compare` decides
//! whether an answer is right. The demo starts the same gateway as `forecourt run` and must never reach into it:
//! everything goes over sockets and through the configuration file.

mod answered;
mod asked;
mod compare;
mod dealer;
mod ground;
mod lot;
mod refused;
mod screen;
mod script;
mod speech;
mod stock;
mod table;
mod walk;
mod wire;

use std::io;
use std::net::SocketAddr;

use tokio::signal::unix::{SignalKind, signal};

use crate::app::{self, Gateway, Options, StartError};

pub use dealer::{Dealer, Received};
pub use screen::Screen;

use ground::Ground;
use walk::{Tally, Walk};

/// Why the demo did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The gateway did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Something around it failed, such as the dealer's socket, the directory, or the output.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Takes the walk and, unless it is to be `once`, serves until told to stop. Whether every answer
/// was what the rules say; false as well when it was told to stop before the end.
///
/// # Errors
/// Why it could not be taken.
pub fn run(screen: &mut Screen<'_>, once: bool) -> Result<bool, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(present(screen, once))
}

async fn present(screen: &mut Screen<'_>, once: bool) -> Result<bool, Failure> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut told = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let dealer = Dealer::start()?;
    let mut ground = Ground::prepare(dealer.address())?;
    let gateway = start(&mut ground)?;
    let address = listener(&gateway)?;
    let admin = gateway.admin_address();

    screen.line(&format!(
        "Forecourt {} at http://{address}\nin front of a strict dealer agent at http://{}\n\n\
         > is what a buyer's agent sends, < what it receives.",
        env!("CARGO_PKG_VERSION"),
        dealer.address()
    ))?;
    let walk = Walk::new(screen, &ground, &dealer, address, admin);
    let tally = tokio::select! {
        tally = walk.take(table::SCRIPT) => tally?,
        () = told() => return Ok(false),
    };
    conclude(screen, tally)?;
    if !once {
        // The file stands as it was last reloaded, so this settles what the watch may still ask.
        let _ = gateway.reload();
        invite(screen, &gateway, &ground)?;
        if let Ok(loaded) = app::load(&Options::new(ground.file())) {
            // Reloads are told from here on; a log that somebody else installed will do as well.
            let _ = app::install_log(&loaded.settings);
        }
        tokio::select! {
            () = told() => {}
            () = gateway.asked_to_leave() => {}
        }
        gateway.drain(told()).await;
    }
    gateway.stop();
    Ok(tally.right == tally.all)
}

/// Starts the gateway; on another port where the usual one was taken after all.
fn start(ground: &mut Ground) -> Result<Gateway, Failure> {
    match Gateway::start(Options::new(ground.file())) {
        Err(StartError::Bind { .. }) => {
            ground.move_away()?;
            Ok(Gateway::start(Options::new(ground.file()))?)
        }
        started => Ok(started?),
    }
}

fn listener(gateway: &Gateway) -> io::Result<SocketAddr> {
    let address = gateway.address("demo");
    Ok(address.ok_or(io::ErrorKind::AddrNotAvailable)?)
}

fn conclude(screen: &mut Screen<'_>, tally: Tally) -> io::Result<()> {
    let Tally { right, all } = tally;
    let tone = if right == all {
        screen::Tone::Good
    } else {
        screen::Tone::Bad
    };
    screen.line("")?;
    screen.tell(
        tone,
        &format!("{right} of {all} answers are what the rules say"),
    )
}

/// Says what can be tried now. Each of these calls was made in the walk.
fn invite(screen: &mut Screen<'_>, gateway: &Gateway, ground: &Ground) -> io::Result<()> {
    let address = listener(gateway)?;
    let admin = gateway.admin_address();
    let file = ground.file();
    let access_log = ground.access_log();
    screen.line(&format!(
        r#"
It keeps serving until Ctrl-C. To try it from another terminal:

URL=http://{address}
J='Content-Type: application/json'
OTHER='A2A-Extensions: {uri}'
CALL='{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m-1",
"role":"ROLE_USER","parts":[{{"data":{{"type":"dealer.information.request"}}}}]}}}}}}'

curl -i -H "$J" -d "$CALL" $URL/a2a                            # filled in
curl -i -H "$J" -d "$CALL" $URL/a2a -H 'A2A-Version;'          # empty: -32009
curl -i -H "$J" -d "$CALL" $URL/a2a -H 'A2A-Version: 0.3'      # -32009
curl -i -H "$J" -d "$CALL" $URL/a2a -H "$OTHER"                # another contract's: -32008
curl -i -H "$J" -d "[$CALL]" $URL/a2a                          # a batch: -32600
curl -N -H "$J" -d "${{CALL/SendMessage/SendStreamingMessage}}" $URL/a2a   # events
for i in 1 2 3; do curl -i -H "$J" -d "$CALL" $URL/busy; done      # RATE_LIMITED, -32000
for i in 1 2 3; do curl -i -H "$J" -d "$CALL" $URL/busy-1.2; done  # and in 1.2: -32002
curl -i -H "$J" -d "$CALL" $URL/gone                           # nobody there: 502

curl http://{admin}/metrics
tail -f {access_log}
$EDITOR {file}      # saved, it is reloaded
"#,
        uri = asked::AAP_1_2,
        file = file.display(),
        access_log = access_log.display(),
    ))
}

#[cfg(test)]
mod tests;
