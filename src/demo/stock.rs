//! What stands on the demo dealer's lot, and how it is searched, counted and looked up.
//!
//! Invented vehicles, few enough to be checked by eye. What a search lists, the facets count and a
//! vehicle request shows. Knows nothing of HTTP, JSON-RPC or leads.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::lot::{Answer, Trouble, answer};

const NORTHPORT: &str = "Lakeside Motors Northport";
const EASTGATE: &str = "Lakeside Motors Eastgate";

/// One vehicle. The VINs are of a maker that does not exist.
#[derive(Clone, Copy, Debug, Serialize)]
struct Vehicle {
    vin: &'static str,
    stock: &'static str,
    year: u16,
    make: &'static str,
    model: &'static str,
    trim: &'static str,
    condition: &'static str,
    status: &'static str,
    rooftop: &'static str,
    body: &'static str,
    fuel: &'static str,
    mileage: u32,
    price: u32,
}

const VEHICLES: [Vehicle; 5] = [
    Vehicle {
        vin: "1FRCTDEM000000001",
        stock: "LM-0417",
        year: 2024,
        make: "Honda",
        model: "CR-V",
        trim: "EX-L",
        condition: "used",
        status: "available",
        rooftop: NORTHPORT,
        body: "suv",
        fuel: "hybrid",
        mileage: 14_820,
        price: 31_900,
    },
    Vehicle {
        vin: "1FRCTDEM000000002",
        stock: "LM-0388",
        year: 2023,
        make: "Honda",
        model: "CR-V",
        trim: "EX",
        condition: "used",
        status: "available",
        rooftop: NORTHPORT,
        body: "suv",
        fuel: "gas",
        mileage: 28_450,
        price: 27_450,
    },
    Vehicle {
        vin: "1FRCTDEM000000003",
        stock: "LM-0352",
        year: 2022,
        make: "Honda",
        model: "Civic",
        trim: "Sport",
        condition: "cpo",
        status: "available",
        rooftop: NORTHPORT,
        body: "sedan",
        fuel: "gas",
        mileage: 33_100,
        price: 21_900,
    },
    Vehicle {
        vin: "1FRCTDEM000000004",
        stock: "LM-0502",
        year: 2025,
        make: "Toyota",
        model: "RAV4",
        trim: "XLE",
        condition: "new",
        status: "intransit",
        rooftop: EASTGATE,
        body: "suv",
        fuel: "hybrid",
        mileage: 12,
        price: 36_250,
    },
    Vehicle {
        vin: "1FRCTDEM000000005",
        stock: "LM-0299",
        year: 2021,
        make: "BMW",
        model: "X3",
        trim: "xDrive30i",
        condition: "used",
        status: "available",
        rooftop: EASTGATE,
        body: "suv",
        fuel: "gas",
        mileage: 41_200,
        price: 29_800,
    },
];

/// A vehicle by its VIN.
#[derive(Debug, Deserialize)]
pub(super) struct VehicleRequest {
    vin: String,
}

/// A search, or facets of what it would find.
#[derive(Debug, Deserialize)]
pub(super) struct InventoryRequest {
    #[serde(default)]
    filters: Filters,
    #[serde(default)]
    pagination: Pagination,
    sort: Option<Sort>,
}

/// What a search can ask for here. Another filter is refused: ignoring it would answer a question
/// that was not put.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Filters {
    make: Vec<String>,
    model: Vec<String>,
    condition: Vec<String>,
    body: Vec<String>,
    fuel: Vec<String>,
    rooftops: Vec<String>,
    year_min: Option<u16>,
    year_max: Option<u16>,
    price_min: Option<u32>,
    price_max: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
struct Pagination {
    skip: usize,
    limit: usize,
}

impl Default for Pagination {
    fn default() -> Self {
        Self { skip: 0, limit: 20 }
    }
}

#[derive(Debug, Deserialize)]
struct Sort {
    field: Field,
    order: Order,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Field {
    Price,
    Year,
    Mileage,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Order {
    Asc,
    Desc,
}

impl Filters {
    fn admit(&self, vehicle: &Vehicle) -> bool {
        let among = |wanted: &[String], is: &str| {
            wanted.is_empty() || wanted.iter().any(|it| it.eq_ignore_ascii_case(is))
        };
        among(&self.make, vehicle.make)
            && among(&self.model, vehicle.model)
            && among(&self.condition, vehicle.condition)
            && among(&self.body, vehicle.body)
            && among(&self.fuel, vehicle.fuel)
            && among(&self.rooftops, vehicle.rooftop)
            && self.year_min.is_none_or(|least| vehicle.year >= least)
            && self.year_max.is_none_or(|most| vehicle.year <= most)
            && self.price_min.is_none_or(|least| vehicle.price >= least)
            && self.price_max.is_none_or(|most| vehicle.price <= most)
    }

    fn list(&self) -> Vec<Vehicle> {
        let vehicles = VEHICLES.into_iter();
        vehicles.filter(|vehicle| self.admit(vehicle)).collect()
    }
}

/// The vehicles that the filters admit, a page of them.
///
/// # Errors
/// Why there is no answer.
pub(super) fn search(request: &InventoryRequest) -> Result<Answer, Trouble> {
    #[derive(Serialize)]
    struct Page<'v> {
        total: usize,
        skip: usize,
        limit: usize,
        vehicles: &'v [Vehicle],
    }
    let mut found = request.filters.list();
    if let Some(Sort { field, order }) = request.sort {
        found.sort_by_key(|vehicle| match field {
            Field::Price => vehicle.price,
            Field::Year => u32::from(vehicle.year),
            Field::Mileage => vehicle.mileage,
        });
        match order {
            Order::Asc => {}
            Order::Desc => found.reverse(),
        }
    }
    let Pagination { skip, limit } = request.pagination;
    let page: Vec<Vehicle> = found.iter().skip(skip).take(limit).copied().collect();
    answer(
        "inventory.search.response",
        "application/vnd.autoagent.inventory-search-response+json",
        &Page {
            total: found.len(),
            skip,
            limit,
            vehicles: &page,
        },
    )
}

/// One vehicle.
///
/// # Errors
/// Why there is no answer.
pub(super) fn vehicle(request: &VehicleRequest) -> Result<Answer, Trouble> {
    let found = VEHICLES.iter().find(|it| it.vin == request.vin);
    answer(
        "inventory.vehicle.response",
        "application/vnd.autoagent.vehicle-detail-response+json",
        found.ok_or_else(|| Trouble::VehicleNotFound(request.vin.clone()))?,
    )
}

/// What the admitted vehicles have in common, counted.
///
/// # Errors
/// Why there is no answer.
pub(super) fn facets(request: &InventoryRequest) -> Result<Answer, Trouble> {
    #[derive(Serialize)]
    struct Facets {
        makes: Value,
        conditions: Value,
        bodies: Value,
        rooftops: Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        price_range: Option<Range>,
    }
    #[derive(Serialize)]
    struct Range {
        min: u32,
        max: u32,
    }
    let found = request.filters.list();
    let prices = || found.iter().map(|vehicle| vehicle.price);
    let price_range = match (prices().min(), prices().max()) {
        (Some(min), Some(max)) => Some(Range { min, max }),
        _ => None,
    };
    answer(
        "inventory.facets.response",
        "application/vnd.autoagent.inventory-facets-response+json",
        &Facets {
            makes: count(&found, |vehicle| vehicle.make),
            conditions: count(&found, |vehicle| vehicle.condition),
            bodies: count(&found, |vehicle| vehicle.body),
            rooftops: count(&found, |vehicle| vehicle.rooftop),
            price_range,
        },
    )
}

/// How often each value stands among the vehicles, most frequent first.
fn count(vehicles: &[Vehicle], of: impl Fn(&Vehicle) -> &'static str) -> Value {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for vehicle in vehicles {
        match counts.iter_mut().find(|(value, _)| *value == of(vehicle)) {
            Some((_, count)) => *count += 1,
            None => counts.push((of(vehicle), 1)),
        }
    }
    counts.sort_by_key(|(_, count)| usize::MAX - count);
    let entries = counts.into_iter();
    entries
        .map(|(value, count)| json!({ "value": value, "count": count }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::lot::Lot;

    fn ask(lot: &Lot, data: Value) -> Value {
        let answer = lot.serve(&data).unwrap();
        let data: Value = serde_json::from_str(answer.data.get()).unwrap();
        data["data"].clone()
    }

    fn stocks(data: Value) -> Vec<String> {
        let page = ask(&Lot::default(), data);
        let vehicles = page["vehicles"].as_array().unwrap();
        let stock = |it: &Value| it["stock"].as_str().unwrap().to_owned();
        vehicles.iter().map(stock).collect()
    }

    #[test]
    fn filters_filter_and_sorts_sort() {
        let all = stocks(json!({ "type": "inventory.search.request" }));
        assert_eq!(all.len(), 5);
        let search = |filters: Value| {
            stocks(json!({
                "type": "inventory.search.request",
                "filters": filters,
                "sort": { "field": "price", "order": "asc" },
            }))
        };
        assert_eq!(
            search(json!({ "make": ["honda", "BMW"], "price_max": 30_000 })),
            ["LM-0352", "LM-0388", "LM-0299"]
        );
        assert_eq!(
            search(json!({ "condition": ["used"], "year_min": 2023 })),
            ["LM-0388", "LM-0417"]
        );
        assert!(search(json!({ "make": ["Fiat"] })).is_empty());
        let dearest = stocks(json!({
            "type": "inventory.search.request",
            "sort": { "field": "price", "order": "desc" },
            "pagination": { "skip": 1, "limit": 1 },
        }));
        assert_eq!(dearest, ["LM-0417"]);
        let unknown = json!({ "type": "inventory.search.request", "filters": { "colour": [] } });
        assert!(matches!(
            Lot::default().serve(&unknown),
            Err(Trouble::Invalid(_))
        ));
    }

    #[test]
    fn facets_count_what_a_search_lists() {
        let filters = json!({ "body": ["suv"] });
        let facets = ask(
            &Lot::default(),
            json!({ "type": "inventory.facets.request", "filters": filters }),
        );
        let listed = stocks(json!({ "type": "inventory.search.request", "filters": filters }));
        for facet in ["makes", "conditions", "bodies", "rooftops"] {
            let counts = facets[facet].as_array().unwrap();
            let sum: u64 = counts.iter().map(|it| it["count"].as_u64().unwrap()).sum();
            assert_eq!(sum, listed.len() as u64, "{facet}");
        }
        assert_eq!(
            facets["price_range"],
            json!({ "min": 27_450, "max": 36_250 })
        );
    }

    #[test]
    fn each_vehicle_is_found_and_no_other() {
        let lot = Lot::default();
        for vehicle in VEHICLES {
            assert_eq!(vehicle.vin.len(), 17);
            let request = json!({ "type": "inventory.vehicle.request", "vin": vehicle.vin });
            assert_eq!(ask(&lot, request)["stock"], vehicle.stock);
        }
        let request = json!({ "type": "inventory.vehicle.request", "vin": "1FRCTDEM000000099" });
        assert_eq!(
            lot.serve(&request).unwrap_err(),
            Trouble::VehicleNotFound("1FRCTDEM000000099".into())
        );
        let boat = json!({ "type": "boat.search.request" });
        assert_eq!(
            lot.serve(&boat).unwrap_err(),
            Trouble::UnsupportedSkill("boat.search".into())
        );
    }
}
