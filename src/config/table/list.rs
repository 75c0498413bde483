//! Decides how lists are read: of values, and of tables. Must never stop at a wrong item.

use crate::config::document::Value;
use crate::config::read::{At, Field, FromNode, List, describe, quote, take};
use crate::config::report::Finding;
use crate::config::schema::Times;
use crate::config::table::Table;

impl<'t> Table<'t> {
    /// A list of values.
    pub(crate) fn list<T: FromNode>(&mut self, key: &'static str) -> Field<List<T>> {
        self.items(key, false)
    }

    /// A list of values, or one value by itself.
    pub(crate) fn one_or_list<T: FromNode>(&mut self, key: &'static str) -> Field<List<T>> {
        self.items(key, true)
    }

    fn items<T: FromNode>(&mut self, key: &'static str, one_will_do: bool) -> Field<List<T>> {
        let times = if one_will_do {
            Times::OneOrList
        } else {
            Times::List
        };
        self.draw::<T>(key, times);
        let Some((entry, path)) = self.ask(key) else {
            return self.nothing();
        };
        let node = &entry.node;
        let value = match &node.value {
            Value::List(nodes) => nodes
                .iter()
                .enumerate()
                .map(|(index, node)| take(node, &format!("{path}[{index}]"), self.report))
                .collect(),
            Value::Failed => return Field::Wrong,
            Value::Text { .. } if one_will_do => vec![take(node, &path, self.report)],
            Value::Text { .. }
            | Value::Integer(_)
            | Value::Float
            | Value::Boolean(_)
            | Value::Time
            | Value::Null
            | Value::Table(_) => {
                let found = describe(node, self.report);
                let what = format!("expected a list, found {found}");
                let hint = if let Value::Text {
                    expanded: false,
                    text,
                } = &node.value
                {
                    Some(format!("write {key} = [{}]", quote(text)))
                } else {
                    None
                };
                self.report
                    .add(Finding::error(node.span.clone(), path, what).hint(hint));
                return Field::Wrong;
            }
        };
        Field::Given(At {
            value,
            span: node.span.clone(),
            path,
        })
    }

    /// A list of tables, each read by `shape`; empty where there is none.
    pub(crate) fn tables<T>(
        &mut self,
        key: &'static str,
        section: &'static str,
        shape: fn(Table<'t>) -> T,
    ) -> Vec<T> {
        if let Some(drawn) = self.drawn_below(|drawing| drawing.list(key, section), section) {
            shape(drawn);
            return Vec::new();
        }
        let Some((entry, path)) = self.ask(key) else {
            return Vec::new();
        };
        let nodes = match &entry.node.value {
            Value::List(nodes) => nodes.as_slice(),
            // One by itself is read like a list of one, and reported.
            Value::Table(_) => std::slice::from_ref(&entry.node),
            Value::Failed => return Vec::new(),
            Value::Text { .. }
            | Value::Integer(_)
            | Value::Float
            | Value::Boolean(_)
            | Value::Time
            | Value::Null => &[],
        };
        if !matches!(entry.node.value, Value::List(_)) {
            let what = "expected a list of tables";
            let hint = format!("write {key} = [{{ .. }}, {{ .. }}]");
            let finding = Finding::error(entry.node.span.clone(), path.clone(), what);
            self.report.add(finding.hint(hint));
        }
        let below = nodes.iter().enumerate().map(|(index, node)| {
            let mut table = Self {
                span: Some(node.span.clone()),
                ..Self::empty(self.report, section, format!("{path}[{index}]"))
            };
            table.open(node);
            shape(table)
        });
        below.collect()
    }
}
