//! Decides how networks are written: an address with the length of its prefix, or one address.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::config::read::{FromText, Wrong};
use crate::config::schema::Shape;

impl FromText for IpNet {
    const EXPECTED: &'static str =
        "a network such as \"10.0.0.0/8\" or \"2001:db8::/32\", or one address";

    fn from_text(text: &str) -> Result<Self, Wrong> {
        let network = match (text.parse::<IpNet>(), text.parse::<IpAddr>()) {
            (Ok(network), _) => network,
            (Err(_), Ok(address)) => Self::from(address),
            (Err(_), Err(_)) => return Err(Wrong::kind()),
        };
        if network != network.trunc() {
            let hint = format!("write \"{}\"", network.trunc());
            return Err(
                Wrong::because("has an address that is not the network's").hint_showing(hint)
            );
        }
        if let Self::V6(wide) = network
            && wide.addr().to_ipv4_mapped().is_some()
        {
            return Err(Wrong::because("is IPv4 written as IPv6")
                .hint("write the IPv4 network: it counts for both spellings"));
        }
        Ok(network)
    }

    fn shape() -> Shape {
        let pattern = "([0-9]{1,3}(\\.[0-9]{1,3}){3}(/[0-9]{1,2})?)|([0-9A-Fa-f:.]+(/[0-9]{1,3})?)";
        Shape::like("network", <Self as FromText>::EXPECTED, pattern)
    }
}
