//! `forecourt run`: the gateway as a process, from its environment to its exit code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

use super::EX_CONFIG;
use super::print::fail;
use crate::app::{self, Inherited, Options, ServeError, StartError};

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
    let code = match catch_unwind(AssertUnwindSafe(|| serve(options, inherited))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(ServeError::Start(StartError::Config(problems)))) => {
            eprintln!("{problems}");
            ExitCode::from(EX_CONFIG)
        }
        Ok(Err(error)) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
        // Where it happened has been logged.
        Err(_) => ExitCode::FAILURE,
    };
    app::flush_log();
    code
}

fn serve(options: Options, inherited: Inherited) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Thread)?;
    runtime.block_on(app::serve(options, inherited))
}
