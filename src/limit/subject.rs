//! Decides what a quota can count by: who calls, from where, and what the call says of itself.
//!
//! What a call says is the caller's text. It must never be kept: a tenant becomes a fingerprint, a
//! skill counts apart only where it is known beforehand.

use std::net::IpAddr;

use super::caller::{Caller, address_digest, by_address};
use super::fingerprint::{Domain, Fingerprint};
use super::shared::{Digest, Meaning};

/// A longer tenant is none, in bytes: nobody's name is so long, and hashing it is not free.
pub const LONGEST_TENANT: usize = 256;

/// Who calls, and what. Made once per request, from its head; [`calling`](Subject::calling) adds
/// what its body says.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'c> {
    caller: Fingerprint,
    plan: Option<usize>,
    is_configured: bool,
    address: IpAddr,
    call: Option<Call<'c>>,
}

/// What a call says of itself, decoded.
#[derive(Clone, Copy, Debug)]
pub struct Call<'c> {
    /// The JSON-RPC method.
    pub method: &'c str,
    /// The AAP skill, where it asks for one.
    pub skill: Option<&'c str>,
    /// The tenant, where it names one.
    pub tenant: Option<&'c str>,
}

impl Subject<'static> {
    /// The caller at this address, about whose call nothing is known.
    #[must_use]
    pub const fn new(caller: &Caller, address: IpAddr) -> Self {
        Self {
            caller: caller.fingerprint(),
            plan: caller.plan(),
            is_configured: caller.is_configured(),
            address,
            call: None,
        }
    }
}

impl<'c> Subject<'c> {
    /// The same, and the call was read.
    #[must_use]
    pub const fn calling<'r>(&self, call: Call<'r>) -> Subject<'r> {
        Subject {
            call: Some(call),
            caller: self.caller,
            plan: self.plan,
            is_configured: self.is_configured,
            address: self.address,
        }
    }

    pub(super) const fn caller(&self) -> Fingerprint {
        self.caller
    }

    /// Whether the caller is one of those that the configuration names.
    pub(super) const fn is_configured(&self) -> bool {
        self.is_configured
    }

    /// The place of the caller's plan among the configured ones.
    pub(super) const fn plan(&self) -> Option<usize> {
        self.plan
    }

    /// Computed on demand: most endpoints have no address quota.
    pub(super) fn address(&self) -> Fingerprint {
        by_address(Domain::Address, self.address)
    }

    /// One for each tenant; all that name none have the same.
    pub(super) fn tenant(&self) -> Fingerprint {
        self.named_tenant().map_or_else(no_tenant, |tenant| {
            Fingerprint::of(Domain::Tenant, [tenant.as_bytes()])
        })
    }

    /// What names the tenant in every process.
    pub(super) fn tenant_digest(&self) -> Digest {
        Digest::of(Meaning::Tenant, self.named_tenant().map(str::as_bytes))
    }

    /// What names the address in every process.
    pub(super) fn address_digest(&self) -> Digest {
        address_digest(self.address)
    }

    fn named_tenant(&self) -> Option<&'c str> {
        let named = self.call.and_then(|call| call.tenant);
        named.filter(|tenant| !tenant.is_empty() && tenant.len() <= LONGEST_TENANT)
    }

    pub(super) fn method(&self) -> Option<&'c str> {
        self.call.map(|call| call.method)
    }

    pub(super) fn skill(&self) -> Option<&'c str> {
        self.call.and_then(|call| call.skill)
    }
}

/// What stands for no tenant.
pub(super) fn no_tenant() -> Fingerprint {
    Fingerprint::of(Domain::Tenant, [])
}
