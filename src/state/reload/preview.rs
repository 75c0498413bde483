//! Decides what is told of a configuration before it goes live: what it would change, what would stay
//! as it is, and whether it could go live at all.
//!
//! Must never change or count anything, and never show a secret.

mod stays;
mod text;

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use super::veil::Veil;
use super::{Rejected, Reloader};
use crate::config::diff::{Difference, Key, Shown, differences};
use crate::config::{Format, Problem, Problems, Settings, Sources};
use crate::state::effective::Effective;
use crate::state::snapshot::Snapshot;
use crate::state::tls::{FileDifference, Files};

/// What a configuration would change.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// Whether anything would be different.
    pub different: bool,
    /// The generation that serves.
    pub generation: u64,
    /// The hash of what serves.
    pub hash_before: Box<str>,
    /// The hash of what would. `None`: it depends on variables whose values are not told.
    pub hash_after: Option<Box<str>>,
    /// Tables that came, went or changed.
    pub tables: Vec<Difference>,
    /// Whether tables stand in another order and nothing else is different.
    pub reordered: bool,
    /// Files with certificates, roots and keys that would come into force, or out of it.
    pub files: Vec<FileDifference>,
    /// What cannot change while the gateway runs, and would have to.
    pub restart_needed: Vec<&'static str>,
    /// What becomes of quotas, connections and requests.
    pub stays: Vec<String>,
    /// What is probably not meant.
    pub warnings: Problems,
}

impl Reloader {
    /// What a candidate's text would change, as if it stood in the place of the configuration file:
    /// relative paths in it are resolved against the directory of that file, or against another one.
    /// Variables are those of this process. Problems call the text by `name`. Of files that it
    /// includes, those below the directory of that file are read, and no others: whoever asks need not
    /// be allowed to.
    ///
    /// # Errors
    /// Every problem.
    pub fn compare(
        &self,
        (name, text): (&str, &str),
        format: Format,
        directory: Option<&Path>,
    ) -> Result<Preview, Problems> {
        let own = self.path.parent().unwrap_or(Path::new(""));
        // No file has this name; only its directory matters.
        let origin = directory.unwrap_or(own).join("candidate");
        let veil = Veil::default();
        let env = |name: &str| veil.ask(&*self.env, name);
        let named = |problems| named(veil.problems(problems), &origin, name);
        let sources = match directory.is_none_or(|it| it == own) {
            true => Sources::candidate(text, format, &origin, &self.path, &env),
            false => Sources::alone(text, format, &origin, &env),
        };
        let preview = sources
            .parse(&env)
            .and_then(|settings| self.previewed(settings, &veil))
            .map_err(named)?;
        Ok(Preview {
            warnings: named(preview.warnings),
            ..preview
        })
    }

    /// What a reload would change now.
    ///
    /// # Errors
    /// Why a reload would be rejected, but for what needs a restart: that is told.
    pub fn preview(&self) -> Result<Preview, Rejected> {
        let settings =
            Sources::read(&self.path, &*self.env).and_then(|sources| sources.parse(&*self.env));
        settings
            .and_then(|settings| self.previewed(settings, &Veil::default()))
            .map_err(Rejected::Problems)
    }

    fn previewed(&self, mut settings: Settings, veil: &Veil) -> Result<Preview, Problems> {
        let serving: Arc<Snapshot> = self.live.load();
        let mut files = Files::default();
        let compared = self
            .keyring
            .compare(&settings, &mut files, self.wall.now())?;
        self.shared.logs.look(&settings.log)?;
        let (files, warnings) = compared;
        settings.warn(warnings);
        let tables = differences(&serving.settings, &settings);
        let is_other = !serving.settings.serves_like(&settings);
        let effective = Effective::of(&settings);
        let is_veiled = veil.hides(effective.configuration.get());
        Ok(Preview {
            different: is_other || !files.is_empty(),
            generation: serving.generation,
            hash_before: serving.effective.hash.clone(),
            hash_after: (!is_veiled).then_some(effective.hash),
            stays: stays::stays(&serving, &settings, &self.shared.limiter),
            reordered: is_other && tables.is_empty(),
            tables: tables.into_iter().map(|it| covered(it, veil)).collect(),
            files: files
                .into_iter()
                .map(|it| FileDifference {
                    file: veil.cover(&it.file),
                    refused: it.refused.as_deref().map(|why| veil.cover(why)),
                    ..it
                })
                .collect(),
            restart_needed: serving.settings.restart_needed(&settings),
            warnings: veil.problems(settings.warnings),
        })
    }
}

/// The same problems, under the name by which the text is known to whoever sent it.
fn named(problems: Problems, origin: &Path, name: &str) -> Problems {
    let origin = origin.display().to_string();
    let problems = problems.into_iter().map(|problem| Problem {
        file: match *problem.file == *origin {
            true => name.into(),
            false => problem.file,
        },
        ..problem
    });
    problems.collect()
}

/// The same difference, its new values told without what variables hold.
fn covered(difference: Difference, veil: &Veil) -> Difference {
    let cover = |shown: Shown| shown.map(&|text| veil.cover_value(text));
    let keys = difference.keys.into_iter().map(|key| Key {
        after: key.after.map(cover),
        ..key
    });
    Difference {
        keys: keys.collect(),
        ..difference
    }
}
