//! `forecourt run`: the gateway as a process, from its environment to its exit code. Decides what the
//! signals do.

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use super::EX_CONFIG;
use super::print::fail;
use crate::app::{self, Gateway, Inherited, Options, StartError};

pub(super) fn run(file: PathBuf) -> ExitCode {
    // Before there are threads: the environment is changed.
    let inherited = match Inherited::from_env() {
        Ok(inherited) => inherited,
        Err(error) => {
            return fail(format_args!(
                "cannot use the sockets that were passed to this process: {error}"
            ));
        }
    };
    let options = Options::new(file);
    // The log's level and format stand in the file, so it is read once before the log is set up.
    let settings = match app::load(&options) {
        Ok(loaded) => loaded.settings,
        Err(problems) => {
            eprintln!("{problems}");
            return ExitCode::from(EX_CONFIG);
        }
    };
    if let Err(problem) = app::install_log(&settings) {
        eprintln!("{problem}");
        return ExitCode::FAILURE;
    }
    let sockets = settings.most_sockets();
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) if usize::try_from(limit).is_ok_and(|it| it < sockets) => tracing::warn!(
            limit,
            sockets,
            "the limit of open files is below [limits] connections plus max_connections of all upstreams"
        ),
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "cannot raise the limit of open files"),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve(options, inherited)),
        Err(error) => Err(StartError::Thread(error)),
    };
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(StartError::Config(problems)) => {
            eprintln!("{problems}");
            ExitCode::from(EX_CONFIG)
        }
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    };
    app::flush_log();
    code
}

/// Serves until told to stop: SIGHUP reloads, SIGUSR1 opens the access log anew, SIGTERM and SIGINT drain, a second one cuts.
async fn serve(options: Options, inherited: Inherited) -> Result<(), StartError> {
    let signals = || -> std::io::Result<_> {
        Ok((
            signal(SignalKind::hangup())?,
            signal(SignalKind::user_defined1())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        ))
    };
    let (mut hangup, mut rotated, mut terminate, mut interrupt) =
        signals().map_err(StartError::Thread)?;
    let gateway = Gateway::start_with(options, inherited)?;
    loop {
        tokio::select! {
            _ = hangup.recv() => {
                // The outcome is logged and counted where it happens.
                let _ = gateway.reload();
            }
            _ = rotated.recv() => gateway.reopen_access_log(),
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    let again = async {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    gateway.drain(again).await;
    gateway.stop();
    Ok(())
}
