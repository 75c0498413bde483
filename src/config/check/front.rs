//! Decides what may stand in front of a listener, and that a health path hides nothing.

use ipnet::IpNet;

use crate::config::file::{self, File};
use crate::config::read::{Field, List};
use crate::config::report::{Finding, Report};
use crate::config::settings::{ClientHeader, Front};
use crate::config::table::Named;
use crate::protocol::CARDS;

/// What stands in front of a listener; `None` where something was reported.
pub(crate) fn check(named: &Named<file::Listener>, report: &Report<'_>) -> Option<Front> {
    let file = &named.value;
    let trusted_proxies = networks(&file.trusted_proxies, report);
    if trusted_proxies.as_ref().is_some_and(Vec::is_empty)
        && let Some(at) = file.client_header.given()
    {
        let what = "has no effect without `trusted_proxies`";
        report.add(Finding::warning(at.span.clone(), at.path.clone(), what));
    }
    let proxy_protocol = match &file.proxy_protocol {
        None => None,
        Some(table) => {
            let peers = networks(&table.trusted, report);
            if table.trusted.is_absent() {
                let path = format!("{}.proxy_protocol", named.path);
                let what = "trusted is missing: anybody could name any address";
                let hint = "trusted = [\"10.0.0.0/8\"], the addresses of your load balancers";
                report.add(Finding::error(table.span.clone(), path, what).hint(hint.to_owned()));
            }
            Some(peers.filter(|_| !table.trusted.is_absent()))
        }
    };
    let proxy_protocol = match proxy_protocol {
        None => None,
        Some(peers) => Some(peers?),
    };
    Some(Front {
        health: file.health.value().map(|path| path.0),
        proxy_protocol,
        trusted_proxies: trusted_proxies?,
        client_header: file.client_header.or(ClientHeader::default()),
    })
}

/// The networks of a list; an absent list has none.
fn networks(list: &Field<List<IpNet>>, report: &Report<'_>) -> Option<Vec<IpNet>> {
    let at = match list {
        Field::Absent => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Given(at) => at,
    };
    if at.value.is_empty() {
        let hint = "leave it out where there is no proxy in front".to_owned();
        report.add(Finding::error(at.span.clone(), at.path.clone(), "is empty").hint(hint));
        return None;
    }
    for network in at.value.iter().filter_map(Field::given) {
        if network.value.prefix_len() == 0 {
            let what = "is everybody: whoever connects can name any address";
            let hint = "list the addresses of your own proxies".to_owned();
            let finding = Finding::warning(network.span.clone(), network.path.clone(), what);
            report.add(finding.hint(hint));
        }
    }
    at.value.iter().map(Field::value).collect()
}

/// A probe is answered before routing: what has its path could not be reached there.
pub(crate) fn shadows(file: &File, report: &Report<'_>) {
    for listener in file.listeners.iter() {
        let Some(health) = listener.value.health.given() else {
            continue;
        };
        let hidden = |endpoint: &Named<file::Endpoint>| {
            let path = &endpoint.value.path.given()?.value.0;
            let rest = health.value.0.strip_prefix(path.trim_end_matches('/'))?;
            match rest {
                "" | "/" => Some(endpoint.path.clone()),
                _ if CARDS.contains(&rest) => Some(format!("the agent card of {}", endpoint.path)),
                _ => None,
            }
        };
        let hidden = file.endpoints.iter().find_map(hidden).or_else(|| {
            let is_card = CARDS.contains(&&*health.value.0);
            is_card.then(|| "the agent card of a host".to_owned())
        });
        if let Some(hidden) = hidden {
            let what = format!("hides {hidden}");
            let hint = "take a path that nothing is served at, such as \"/healthz\"".to_owned();
            report.add(Finding::error(health.span.clone(), health.path.clone(), what).hint(hint));
        }
    }
}
