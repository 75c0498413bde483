//! Decides which JSON-RPC methods an endpoint serves.
//!
//! Follows A2A 1.0 section 9.4. Any method is forwarded, because extensions may define methods,
//! except: the names of older A2A on a 1.0 endpoint (such a caller would be misread, not served;
//! **our reading**), and whatever an endpoint with a `methods` list leaves out.

use crate::protocol::Version;
use crate::protocol::refusal::Refusal;

/// The methods of A2A 1.0.
pub const METHODS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];

/// Method names of older A2A, with the version that named them so.
const OLDER: [(&str, &str); 12] = [
    ("message/send", "0.3"),
    ("message/stream", "0.3"),
    ("tasks/get", "0.3"),
    ("tasks/cancel", "0.3"),
    ("tasks/resubscribe", "0.3"),
    ("tasks/pushNotificationConfig/set", "0.3"),
    ("tasks/pushNotificationConfig/get", "0.3"),
    ("tasks/pushNotificationConfig/list", "0.3"),
    ("tasks/pushNotificationConfig/delete", "0.3"),
    ("agent/getAuthenticatedExtendedCard", "0.3"),
    ("tasks/send", "0.1"),
    ("tasks/sendSubscribe", "0.1"),
];

/// Holds a method name to the endpoint's version and, where it has one, its list.
///
/// # Errors
/// The refusal: -32601 for an older or unknown name, -32004 or -32003 for a method of A2A 1.0
/// that the list leaves out.
pub fn judge(method: &str, pinned: &Version, served: Option<&[Box<str>]>) -> Result<(), Refusal> {
    if served.is_some_and(|served| served.iter().any(|name| **name == *method)) {
        return Ok(());
    }
    if !pinned.is_before_1_0() {
        // Every older name has a slash, and no name of 1.0 does.
        let older = method
            .contains('/')
            .then(|| OLDER.iter().find(|(name, _)| *name == method));
        if let Some(Some((_, version))) = older {
            return Err(Refusal::MethodNotFound {
                method: method.into(),
                older: Some(version),
            });
        }
    }
    match served {
        None => Ok(()),
        Some(_) if !METHODS.contains(&method) => Err(Refusal::MethodNotFound {
            method: method.into(),
            older: None,
        }),
        Some(_) if method.contains("PushNotification") => {
            Err(Refusal::PushNotificationNotSupported {
                method: method.into(),
            })
        }
        Some(_) => Err(Refusal::UnsupportedOperation {
            method: method.into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Outcome;

    fn outcome(method: &str, pinned: &str, served: Option<&[Box<str>]>) -> Option<Outcome> {
        judge(method, &pinned.parse().unwrap(), served)
            .err()
            .map(|refusal| refusal.outcome())
    }

    #[test]
    fn older_names_are_refused_on_1_0_and_served_on_0_3() {
        for (name, version) in OLDER {
            assert_eq!(outcome(name, "0.3", None), None);
            assert_eq!(outcome(name, "1.0", None), Some(Outcome::MethodNotFound));
            let refusal = judge(name, &"1.0".parse().unwrap(), None).unwrap_err();
            assert!(refusal.message().contains(version), "{}", refusal.message());
        }
        for name in METHODS
            .into_iter()
            .chain(["ext/method", "tasks/search", "", "é"])
        {
            assert_eq!(outcome(name, "1.0", None), None, "{name}");
        }
    }

    #[test]
    fn a_list_closes_the_endpoint() {
        let served: Vec<Box<str>> = vec!["SendMessage".into(), "tasks/get".into()];
        for (name, expected) in [
            ("SendMessage", None),
            ("tasks/get", None),
            ("GetTask", Some(Outcome::UnsupportedOperation)),
            ("GetExtendedAgentCard", Some(Outcome::UnsupportedOperation)),
            (
                "CreateTaskPushNotificationConfig",
                Some(Outcome::PushNotSupported),
            ),
            (
                "ListTaskPushNotificationConfigs",
                Some(Outcome::PushNotSupported),
            ),
            ("message/send", Some(Outcome::MethodNotFound)),
            ("Foo", Some(Outcome::MethodNotFound)),
        ] {
            assert_eq!(outcome(name, "1.0", Some(&served)), expected, "{name}");
        }
    }
}
