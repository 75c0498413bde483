//! Decides how a store is asked: the scripts, what goes into them and what comes out.

use std::sync::LazyLock;

use redis::{RedisError, Script, ScriptInvocation};

use super::connect::Connection;
use super::failure::Failure;
use super::key::Digest;
use super::memory::Said;
use crate::limit::pace::Pace;

static GCRA: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("gcra.lua")));
static ACCOUNT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("account.lua")));
static REFUND: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("refund.lua")));

/// What is asked of one bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question<'q> {
    pub(super) pace: &'q Pace,
    pub(super) digest: Digest,
    pub(super) cost: u32,
    pub(super) most: u32,
}

impl Question<'_> {
    /// What so many are worth, in ns.
    pub(super) fn ns(&self, count: u32) -> u64 {
        let ns = self.pace.interval().as_nanos() * u128::from(count);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Asks about several buckets at once. A script that the store does not know is sent along, once.
pub(super) async fn ask(
    connection: &mut Connection,
    questions: &[Question<'_>],
) -> Result<Vec<Said>, Failure> {
    let mut call = GCRA.prepare_invoke();
    for question in questions {
        call.key(question.digest.key());
        add(&mut call, question);
    }
    let answer: Result<Vec<i64>, RedisError> = call.invoke_async(connection).await;
    let numbers = answer.map_err(|error| told(&error))?;
    let said: Vec<Said> = numbers.chunks(3).filter_map(said).collect();
    if said.len() == questions.len() && numbers.len() == 3 * said.len() {
        Ok(said)
    } else {
        Err(Failure::Protocol)
    }
}

fn add(call: &mut ScriptInvocation<'_>, question: &Question<'_>) {
    let interval = u64::try_from(question.pace.interval().as_nanos()).unwrap_or(u64::MAX);
    call.arg(interval)
        .arg(question.pace.burst().get())
        .arg(question.cost)
        .arg(question.most.max(question.cost));
}

fn said(numbers: &[i64]) -> Option<Said> {
    let [granted, wait, debt] = numbers else {
        return None;
    };
    Some(Said {
        granted: u32::try_from(*granted).ok()?,
        wait: u64::try_from(*wait).ok()?,
        debt: u64::try_from(*debt).ok()?,
    })
}

/// Gives back to a bucket what it was charged in vain, in ns.
pub(super) async fn refund(
    connection: &mut Connection,
    digest: Digest,
    ns: u64,
) -> Result<(), Failure> {
    let mut call = REFUND.prepare_invoke();
    call.key(digest.key()).arg(ns);
    let answer: Result<i64, RedisError> = call.invoke_async(connection).await;
    answer.map(drop).map_err(|error| told(&error))
}

/// How far buckets are from full, in ns; forgives them where that is wanted.
pub(super) async fn account(
    connection: &mut Connection,
    buckets: &[Digest],
    forgives: bool,
) -> Result<Vec<u64>, Failure> {
    let mut call = ACCOUNT.prepare_invoke();
    for bucket in buckets {
        call.key(bucket.key());
    }
    call.arg(u8::from(forgives));
    let answer: Result<Vec<u64>, RedisError> = call.invoke_async(connection).await;
    let debts = answer.map_err(|error| told(&error))?;
    if debts.len() == buckets.len() {
        Ok(debts)
    } else {
        Err(Failure::Protocol)
    }
}

/// Makes sure that the other side is a store that answers, and knows the scripts.
pub(super) async fn greet(connection: &mut Connection) -> Result<(), RedisError> {
    GCRA.load_async(connection).await?;
    REFUND.load_async(connection).await?;
    ACCOUNT.load_async(connection).await?;
    Ok(())
}

fn told(error: &RedisError) -> Failure {
    let failure = Failure::of(error);
    tracing::debug!(%error, kind = failure.label(), "a store failed");
    failure
}
