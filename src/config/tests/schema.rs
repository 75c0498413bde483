//! The JSON Schema: it is the committed one, it accepts what loads, and it refuses what is wrong in
//! shape.

use serde_json::{Map, Value};

use super::*;

/// Bad fixtures that no schema can refuse: their fault lies between keys, in a variable, in what a
/// name means, or in how a text is written. Each is refused by the reader.
const NOT_OF_SHAPE: [&str; 21] = [
    "address-clashes.toml",
    "admin-on-a-listener.toml",
    "admin-tokens.toml",
    "admin-unprotected.toml",
    "bare-variable-is-a-warning.toml",
    "body-over-budget.toml",
    "callers-empty.toml",
    "callers-of-nobody.toml",
    "callers-unasked.toml",
    "callers-warnings.toml",
    "contracts.toml",
    "draft-without-extension.toml",
    "fronts-warnings.toml",
    "issuer-without-plans.toml",
    "json-duplicate-key.json",
    "quota-warnings.toml",
    "report-beside-contracts.toml",
    "same-place.toml",
    "unknown-names.toml",
    "variables.toml",
    "warnings.toml",
];

fn committed() -> PathBuf {
    repository("config/forecourt.schema.json")
}

fn parsed() -> Value {
    serde_json::from_str(&schema()).unwrap()
}

#[test]
fn the_committed_schema_is_what_the_reader_draws() {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(committed(), schema()).unwrap();
    }
    let found = fs::read_to_string(committed()).unwrap_or_default();
    assert!(
        found == schema(),
        "config/forecourt.schema.json is not what `forecourt schema` prints"
    );
}

/// A configuration text as JSON, where it is TOML or JSON at all.
fn value(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).unwrap();
    let text = text.trim_start_matches('\u{feff}');
    match Format::of(path) {
        Format::Toml => ::toml::from_str(text).ok(),
        Format::Json => serde_json::from_str(text).ok(),
    }
}

#[test]
fn what_loads_fits_the_schema() {
    let schema = parsed();
    let mut count = 0;
    for directory in ["config", "tests/fixtures/config/good"] {
        for entry in fs::read_dir(repository(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path == committed() {
                continue;
            }
            let faults = check(&schema, &value(&path).unwrap());
            assert!(faults.is_empty(), "{}: {faults:#?}", path.display());
            count += 1;
        }
    }
    assert_eq!(count, 23);
}

#[test]
fn what_is_wrong_in_shape_does_not_fit() {
    let schema = parsed();
    let mut fits = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(repository("tests/fixtures/config/bad")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|it| it == "problems") {
            continue;
        }
        // What is no TOML or JSON has no shape.
        let Some(value) = value(&path) else { continue };
        count += 1;
        if check(&schema, &value).is_empty() {
            fits.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    fits.sort();
    assert_eq!(fits, NOT_OF_SHAPE);
    assert!(count >= 45, "{count}");
}

#[test]
fn what_is_shown_of_settings_fits_too() {
    let text = fs::read_to_string(repository("config/forecourt.toml")).unwrap();
    let shown = serde_json::to_value(toml(&text).unwrap()).unwrap();
    let faults = check(&parsed(), &shown);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_key_is_described() {
    fn walk(path: &str, schema: &Value, undescribed: &mut Vec<String>, count: &mut usize) {
        let Some(properties) = schema["properties"].as_object() else {
            return;
        };
        for (key, property) in properties {
            let path = format!("{path}.{key}");
            if property.get("description").is_none() {
                undescribed.push(path.clone());
            }
            *count += 1;
            walk(&path, property, undescribed, count);
            walk(&path, &property["additionalProperties"], undescribed, count);
            walk(&path, &property["items"], undescribed, count);
        }
    }
    let (mut undescribed, mut count) = (Vec::new(), 0);
    walk("", &parsed(), &mut undescribed, &mut count);
    assert_eq!(undescribed, [""; 0]);
    assert_eq!(count, KEYS);
}

/// As many as the reader asks for: `documentation` counts them as well.
const KEYS: usize = 135;

/// The faults of a value under a schema: just the keywords that ours uses, and a panic at any other.
fn check(root: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    under(root, root, value, "", &mut faults);
    faults
}

fn under(root: &Value, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let fits = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" | "$defs" => true,
            // Looked at with `properties`, which every closed table has, or by themselves.
            "properties" => {
                for (key, schema) in wanted.as_object().unwrap() {
                    if let Some(value) = value.get(key) {
                        under(root, schema, value, &format!("{at}.{key}"), faults);
                    }
                }
                true
            }
            "additionalProperties" => additional(root, schema, wanted, value, at, faults),
            "$ref" => {
                let name = wanted.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                under(root, &root["$defs"][name], value, at, faults);
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    under(root, wanted, item, &format!("{at}[{index}]"), faults);
                }
                true
            }
            "anyOf" => wanted.as_array().unwrap().iter().any(|schema| {
                let mut inner = Vec::new();
                under(root, schema, value, at, &mut inner);
                inner.is_empty()
            }),
            "type" => match wanted.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "integer" => value.is_i64() || value.is_u64(),
                other => panic!("type {other}"),
            },
            "enum" => wanted.as_array().unwrap().contains(value),
            "required" => {
                let keys = wanted.as_array().unwrap().iter();
                let mut keys = keys.map(|key| key.as_str().unwrap());
                value
                    .as_object()
                    .is_none_or(|it| keys.all(|key| it.contains_key(key)))
            }
            "minimum" => value
                .as_i64()
                .is_none_or(|it| it >= wanted.as_i64().unwrap()),
            "maximum" => value
                .as_i64()
                .is_none_or(|it| it <= wanted.as_i64().unwrap()),
            "minLength" => value
                .as_str()
                .is_none_or(|it| it.len() as u64 >= wanted.as_u64().unwrap()),
            "minProperties" => {
                let least = wanted.as_u64().unwrap();
                value.as_object().is_none_or(|it| it.len() as u64 >= least)
            }
            "pattern" => value.as_str().is_none_or(|it| matches(wanted, it)),
            "propertyNames" => value
                .as_object()
                .is_none_or(|it| it.keys().all(|key| matches(&wanted["pattern"], key))),
            other => panic!("the checker does not know {other}"),
        };
        if !fits {
            faults.push(format!("{at}: {keyword}"));
        }
    }
}

fn additional(
    root: &Value,
    schema: &Value,
    wanted: &Value,
    value: &Value,
    at: &str,
    faults: &mut Vec<String>,
) -> bool {
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    let mut fits = true;
    for (key, value) in value.as_object().unwrap_or(&none) {
        if known.contains_key(key) {
            continue;
        }
        if wanted == &Value::Bool(false) {
            fits = false;
        } else {
            under(root, wanted, value, &format!("{at}.{key}"), faults);
        }
    }
    fits
}

fn matches(pattern: &Value, text: &str) -> bool {
    regex::Regex::new(pattern.as_str().unwrap())
        .unwrap()
        .is_match(text)
}
