//! Tables: what Python's libraries read by Arrow's interface of C, as it lies in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StructBuilder, UInt64Builder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Fields, Schema};
use attribution::{Subject, lost};
use cli::ByRule;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use replay::metrics::Cause;
use replay::registry::columns;
use replay::{Kind, Value};

use crate::errors::raised;

/// A table, immutable. Every library that takes Arrow data by the PyCapsule interface reads it without a copy.
#[pyclass(frozen, module = "lockstep._lockstep")]
pub(crate) struct Table {
    columns: Vec<Filled>,
    batch: RecordBatch,
}

/// A column with its values.
struct Filled {
    name: String,
    definition: String,
    kind: Kind,
    values: Vec<Value>,
}

#[pymethods]
impl Table {
    /// The table as a stream of Arrow arrays.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A request that the producer may leave unmet.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The table's schema for Arrow; each field's metadata has the column's `definition`.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.batch.schema()).map_err(|error| raised(&error.into()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// How many rows it has.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of its columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// What each column is, with its unit, by name.
    #[getter]
    fn definitions<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let definitions = PyDict::new(py);
        self.columns.iter().try_for_each(|column| definitions.set_item(&column.name, &column.definition))?;
        Ok(definitions)
    }

    /// The values of a column, in the order of rows.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let found = self.columns.iter().find(|column| column.name == name);
        let column = found.ok_or_else(|| pyo3::exceptions::PyKeyError::new_err(name.to_owned()))?;
        PyList::new(py, (0..column.values.len()).map(|row| column.value(py, row)).collect::<PyResult<Vec<_>>>()?)
    }

    /// The rows as dictionaries by column, without any library.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let row = |row: usize| {
            let values = PyDict::new(py);
            self.columns.iter().try_for_each(|column| values.set_item(&column.name, column.value(py, row)?))?;
            Ok(values)
        };
        (0..self.batch.num_rows()).map(row).collect()
    }

    fn __repr__(&self) -> String {
        format!("<lockstep.Table of {} rows and {} columns>", self.batch.num_rows(), self.columns.len())
    }
}

impl Table {
    fn new(columns: Vec<Filled>) -> PyResult<Table> {
        let fields: Vec<Field> = columns.iter().map(Filled::field).collect();
        let arrays = columns.iter().map(Filled::array).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        Ok(Table { batch: batch.map_err(|error| raised(&error.into()))?, columns })
    }
}

/// A count under a name, of a column of several.
fn named_count() -> Fields {
    vec![Field::new("name", DataType::Utf8, true), Field::new("count", DataType::UInt64, true)].into()
}

impl Filled {
    fn new(name: impl Into<String>, definition: impl Into<String>, kind: Kind, values: Vec<Value>) -> Filled {
        Filled { name: name.into(), definition: definition.into(), kind, values }
    }

    fn field(&self) -> Field {
        let list = |of: DataType| DataType::new_list(of, true);
        let of = match self.kind {
            Kind::Count => DataType::UInt64,
            Kind::Quotient => DataType::Float64,
            Kind::Text => DataType::Utf8,
            Kind::Counts => list(DataType::UInt64),
            Kind::Named => list(DataType::Struct(named_count())),
        };
        let metadata = HashMap::from([("definition".to_owned(), self.definition.clone())]);
        Field::new(&self.name, of, true).with_metadata(metadata)
    }

    /// For Arrow. The words that stand in place of a number are no number.
    fn array(&self) -> ArrayRef {
        let values = self.values.iter();
        match self.kind {
            Kind::Count => {
                Arc::new(UInt64Array::from_iter(values.map(|v| if let Value::Count(n) = v { Some(*n) } else { None })))
            }
            Kind::Quotient => Arc::new(Float64Array::from_iter(
                values.map(|v| if let Value::Quotient(q) = v { Some(*q) } else { None }),
            )),
            Kind::Text => Arc::new(StringArray::from_iter(
                values.map(|v| if let Value::Text(text) = v { Some(text.as_str()) } else { None }),
            )),
            Kind::Counts => {
                let mut lists = ListBuilder::new(UInt64Builder::new());
                for value in values {
                    let Value::Counts(counts) = value else {
                        lists.append_null();
                        continue;
                    };
                    lists.append_value(counts.iter().map(|n| Some(*n)));
                }
                Arc::new(lists.finish())
            }
            Kind::Named => {
                let of = StructBuilder::new(
                    named_count(),
                    vec![Box::new(StringBuilder::new()), Box::new(UInt64Builder::new())],
                );
                let mut lists = ListBuilder::new(of);
                for value in values {
                    let Value::Named(counts) = value else {
                        lists.append_null();
                        continue;
                    };
                    for (name, count) in counts {
                        let of = lists.values();
                        if let Some(names) = of.field_builder::<StringBuilder>(0) {
                            names.append_value(name);
                        }
                        if let Some(counts) = of.field_builder::<UInt64Builder>(1) {
                            counts.append_value(*count);
                        }
                        of.append(true);
                    }
                    lists.append(true);
                }
                Arc::new(lists.finish())
            }
        }
    }

    /// For Python. The words that stand in place of a number are no number.
    fn value<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyAny>> {
        Ok(match &self.values[row] {
            Value::None => py.None().into_bound(py),
            Value::Count(count) => count.into_pyobject(py)?.into_any(),
            Value::Quotient(quotient) => quotient.into_pyobject(py)?.into_any(),
            Value::Text(_) if self.kind != Kind::Text => py.None().into_bound(py),
            Value::Text(text) => text.into_pyobject(py)?.into_any(),
            Value::Counts(counts) => counts.into_pyobject(py)?.into_any(),
            Value::Named(counts) => {
                let of = PyDict::new(py);
                counts.iter().try_for_each(|(name, count)| of.set_item(name, count))?;
                of.into_any()
            }
        })
    }
}

/// A row for each model under each rule for locks: the columns of `replay --csv`.
pub(crate) fn rows(by_rule: &[ByRule]) -> PyResult<Table> {
    let results = || by_rule.iter().flat_map(|of| of.outcomes.iter().map(|outcome| (&by_rule[0].setting, outcome)));
    let of = |column: &replay::Column| {
        let values = results().map(|(setting, outcome)| column.value(setting, outcome)).collect();
        Filled::new(column.name, column.definition, column.kind, values)
    };
    Table::new(columns().map(of).collect())
}

/// A row for each lane under each rule for locks: the columns of `replay --lanes-out`.
pub(crate) fn lanes(by_rule: &[ByRule]) -> PyResult<Table> {
    let mut all: [Vec<Value>; 5] = Default::default();
    for ByRule { rule, outcomes, origins, .. } in by_rule {
        let instructions = outcomes.first().map_or(&[][..], |first| &first.lane_instructions);
        for (lane, (origin, instructions)) in origins.iter().zip(instructions).enumerate() {
            let row: [Value; 5] = [
                rule.as_str().into(),
                lane.into(),
                u64::from(origin.thread.0).into(),
                u64::from(origin.generation).into(),
                (*instructions).into(),
            ];
            all.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
    }
    let [rule, lane, thread, generation, instructions] = all;
    Table::new(vec![
        Filled::new("locks", "The rule for locks.", Kind::Text, rule),
        Filled::new("lane", "The lane's number, from 0: lanes of one warp have numbers in a row.", Kind::Count, lane),
        Filled::new("thread", "The thread whose instructions it runs.", Kind::Count, thread),
        Filled::new("generation", "Lanes of one generation share warps.", Kind::Count, generation),
        Filled::new("thread_instructions", "Instructions that it runs.", Kind::Count, instructions),
    ])
}

/// `lost_to_loop`, as the rows of models have it.
fn lost_to(cause: Cause) -> String {
    format!("lost_to_{}", cause.name().trim_end_matches(" trip count").replace(' ', "_"))
}

/// A row for each line, function or whatever was asked for, of each model: the rows of `replay --by`.
pub(crate) fn lost(by_rule: &[ByRule]) -> PyResult<Table> {
    let mut rows: Vec<(&str, &replay::Outcome, &lost::Row)> = Vec::new();
    let by = by_rule.iter().find_map(|of| of.by).unwrap_or(lost::By::Line);
    for ByRule { rule, outcomes, lost, .. } in by_rule {
        for (outcome, of_outcome) in outcomes.iter().zip(lost) {
            rows.extend(of_outcome.iter().flatten().map(|row| (rule.as_str(), outcome, row)));
        }
    }
    let column = |name: &str, definition: &str, kind: Kind, value: &dyn Fn(&replay::Outcome, &lost::Row) -> Value| {
        let values = rows.iter().map(|(_, outcome, row)| value(outcome, row)).collect();
        Filled::new(name, definition, kind, values)
    };
    let rules = rows.iter().map(|(rule, ..)| (*rule).into()).collect();
    let mut all = vec![
        Filled::new("locks", "The rule for locks.", Kind::Text, rules),
        column("heuristic", "The reconvergence model.", Kind::Text, &|outcome, _| (&*outcome.heuristic).into()),
        column("subject", &format!("The {} that the row is about.", by.name()), Kind::Text, &|_, row| {
            row.subject.to_string().into()
        }),
        column("file", "Its source file, where that is known.", Kind::Text, &|_, row| place(&row.subject).0),
        column("line", "The line in it, from 1.", Kind::Count, &|_, row| place(&row.subject).1),
        column("function", "Its function; of inlined code the innermost.", Kind::Text, &|_, row| place(&row.subject).2),
    ];
    if by.has_parted() {
        let definition = "Lane-slots lost by lanes that left the active ones here.";
        all.push(column("parted_slots", definition, Kind::Count, &|_, row| row.parted.into()));
    }
    if by.has_lost() {
        let definition = "Lane-slots lost in warp instructions of this.";
        all.push(column("lost_slots", definition, Kind::Count, &|_, row| row.lost.into()));
        for cause in Cause::ALL {
            let definition = format!("Those that were lost to: {}.", cause.name());
            all.push(column(&lost_to(cause), &definition, Kind::Count, &|_, row| row.lost_by[cause as usize].into()));
        }
    }
    if by.has_issued() {
        all.push(column("fetches", "Warp instructions of this.", Kind::Count, &|_, row| row.issued.fetches.into()));
        all.push(column("thread_instructions", "Thread instructions of this.", Kind::Count, &|_, row| {
            row.issued.thread_instructions.into()
        }));
        let definition = "thread_instructions / (fetches x warp_size): 0 to 1.";
        all.push(column("simt_efficiency", definition, Kind::Quotient, &|outcome, row| {
            row.efficiency(outcome.warp_size).into()
        }));
    }
    Table::new(all)
}

/// The file, line and function of a subject, as far as it has them.
fn place(subject: &Subject) -> (Value, Value, Value) {
    let text = |text: &str| Value::from(text);
    match subject {
        Subject::Nowhere | Subject::Cause(_) | Subject::Path(_) => Default::default(),
        Subject::Function(name) => (Value::None, Value::None, text(name)),
        Subject::Line(line) => {
            let function = line.functions.first().map_or(Value::None, |name| text(name));
            (text(&line.file), u64::from(line.line).into(), function)
        }
        Subject::NoLine { function, .. } => (Value::None, Value::None, text(function)),
        Subject::Instruction { function, line, .. } => {
            let line = line.as_ref().map(|line| (text(&line.file), u64::from(line.line).into()));
            let (file, number) = line.unwrap_or_default();
            (file, number, text(function))
        }
    }
}
