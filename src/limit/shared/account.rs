//! Decides what operators are told of a caller's buckets in a store, and forgives it there.
//!
//! Which buckets: all that the caller's name tells of, and those that this process asked about lately.
//! Nothing here is on the path of a request, and no answer of it moves the circuit. Must never look
//! through a store's keys: others keep theirs there.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::{Instant, timeout_at};

use super::connect::Connection;
use super::failure::Failure;
use super::key::Digest;
use super::memory::Want;
use super::script;
use super::store::{Inner, Store};
use super::{Group, Identity};
use crate::limit::quota::{Kind, Quota};
use crate::limit::{Entry, Owner, Standing, Subject};

/// How many buckets are asked about at once: few enough that no request waits for it.
const AT_ONCE: usize = 100;

/// How long all questions together may take, each of which has the store's own time.
const LONGEST: Duration = Duration::from_secs(1);

/// A bucket of an owner.
struct Bucket<'q> {
    digest: Digest,
    quota: usize,
    skill: Option<&'q str>,
    is_of_another: bool,
}

impl Store {
    /// The buckets of an owner that are not full by the store's clock, with those of its quotas; the
    /// emptiest first. Where the store failed, why: then these are not all.
    pub async fn entries<'q>(
        &self,
        owner: &Owner,
        quotas: &[&'q Quota],
        plan: Option<usize>,
    ) -> (Vec<Entry<'q>>, Option<Failure>) {
        let buckets = self.buckets(owner, quotas);
        let (debts, failure) = account(self.inner(), &buckets, false).await;
        let owing = buckets.iter().zip(debts).filter(|(_, debt)| *debt > 0);
        let entry = |(bucket, debt): (&Bucket<'q>, u64)| {
            let Kind::Rate(pace) = &quotas.get(bucket.quota)?.measure(plan).kind else {
                return None;
            };
            Some(Entry {
                quota: bucket.quota,
                skill: bucket.skill,
                is_of_another: bucket.is_of_another,
                standing: pace.standing(debt),
            })
        };
        let mut entries: Vec<_> = owing.filter_map(entry).collect();
        entries.sort_by_key(Entry::rank);
        (entries, failure)
    }

    /// Forgets what an owner owes with those of its quotas, and whatever this process was granted or
    /// told of it. How many buckets owed something; where the store failed, why: then some may still.
    pub async fn forgive(&self, owner: &Owner, quotas: &[&Quota]) -> (usize, Option<Failure>) {
        let buckets = self.buckets(owner, quotas);
        let (debts, failure) = account(self.inner(), &buckets, true).await;
        // Afterwards, so that nothing from before is learnt once more.
        self.inner().memory.forget(&owner.digits);
        (debts.iter().filter(|debt| **debt > 0).count(), failure)
    }

    fn buckets<'q>(&self, owner: &Owner, quotas: &[&'q Quota]) -> Vec<Bucket<'q>> {
        let named = quotas.iter().enumerate().flat_map(|(at, quota)| {
            let named = quota.named(owner).into_iter();
            named.map(move |(digest, skill)| Bucket {
                digest,
                quota: at,
                skill,
                is_of_another: false,
            })
        });
        let places: HashMap<u32, usize> =
            (0..).zip(quotas).map(|(at, it)| (it.tag(), at)).collect();
        let known = self.inner().memory.of(&owner.digits).into_iter();
        let known = known.filter_map(|(bucket, of, digest)| {
            let at = *places.get(&of.quota)?;
            let told = quotas.get(at)?.tell(bucket, of.owner);
            Some(Bucket {
                digest,
                quota: at,
                skill: told.as_ref().and_then(|told| told.skill),
                is_of_another: told.is_none(),
            })
        });
        let mut seen = HashSet::new();
        let all = named.chain(known);
        all.filter(|bucket| seen.insert(bucket.digest)).collect()
    }
}

impl Group {
    /// How this subject stands in the store with those of its quotas that look at the call, by their
    /// places among the endpoint's. Asked now; nothing is charged.
    ///
    /// # Errors
    /// Why the store did not tell.
    pub async fn ask_standing(
        &self,
        quotas: &[Quota],
        who: &Subject<'_>,
        identity: &Identity<'_>,
    ) -> Result<Vec<(usize, Standing)>, Failure> {
        let wants = self.wants(quotas, who);
        let bucket = |want: &Want<'_>| {
            let quota = quotas.get(want.place)?;
            Some(Bucket {
                digest: quota.digest(who, identity),
                quota: want.place,
                skill: None,
                is_of_another: false,
            })
        };
        let buckets: Vec<_> = wants.iter().filter_map(bucket).collect();
        let (debts, failure) = account(self.store.inner(), &buckets, false).await;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let standing = |(want, debt): (&Want<'_>, u64)| (want.place, want.pace.standing(debt));
        Ok(wants.iter().zip(debts).map(standing).collect())
    }
}

/// How far buckets are from full, in ns: of as many of them, in their order, as the store answered for.
async fn account(
    store: &Inner,
    buckets: &[Bucket<'_>],
    forgives: bool,
) -> (Vec<u64>, Option<Failure>) {
    let mut debts = Vec::with_capacity(buckets.len());
    if buckets.is_empty() {
        return (debts, None);
    }
    let Some(connection) = store.connection() else {
        return (debts, Some(Failure::Unreachable));
    };
    let digests: Vec<Digest> = buckets.iter().map(|bucket| bucket.digest).collect();
    let end = Instant::now() + LONGEST;
    for digests in digests.chunks(AT_ONCE) {
        let asking = ask(&connection, digests, forgives);
        match timeout_at(store.deadline().min(end), asking).await {
            Ok(Ok(some)) => debts.extend(some),
            Ok(Err(failure)) => return (debts, Some(failure)),
            Err(_) => return (debts, Some(Failure::Timeout)),
        }
    }
    (debts, None)
}

async fn ask(
    connection: &Connection,
    digests: &[Digest],
    forgives: bool,
) -> Result<Vec<u64>, Failure> {
    match connection {
        Connection::Single(_) => script::account(&mut connection.clone(), digests, forgives).await,
        // Each may stand in another part of it.
        Connection::Cluster(_) => {
            let each = digests.iter().map(|digest| async move {
                let one = std::slice::from_ref(digest);
                script::account(&mut connection.clone(), one, forgives).await
            });
            Ok(try_join_all(each).await?.concat())
        }
    }
}
