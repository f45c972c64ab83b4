//! The ordered list of all heuristics, from which help, docs and tests are made. A program can bring more of them.

use parameters::{Named, Parameter, Registered};

use crate::mechanisms::predication::{self, Predicated};
use crate::{Entry, Family, Heuristic, Program, models};

/// The heuristics of this crate, in the order in which they are listed everywhere.
pub static REGISTRY: &[Entry] = &[
    models::min_pc::ENTRY,
    models::min_sp_pc::ENTRY,
    models::max_fun_min_pc::ENTRY,
    models::long::ENTRY,
    models::long_min_pc::ENTRY,
    models::long_min_sp_pc::ENTRY,
    models::long_irb::ENTRY,
    models::rd_min_sp_pc::ENTRY,
    models::lee::ENTRY,
    models::round_robin::ENTRY,
    models::round_robin_eq::ENTRY,
    models::ipdom::ENTRY,
    models::none::ENTRY,
    models::tf_stack::ENTRY,
    models::tf_branch::ENTRY,
    models::dual_path::ENTRY,
    models::multi_path::ENTRY,
    models::barrier::ENTRY,
    models::hanoi::ENTRY,
    models::wave::ENTRY,
    models::dws::ENTRY,
    models::dwf::ENTRY,
    models::tbc::ENTRY,
    models::lwm::ENTRY,
    models::oracle::ENTRY,
    models::distance::ENTRY,
];

static ALL: Registered<Entry> = Registered::new(REGISTRY);

/// All heuristics: those of this crate, then those that the program brings ([`bring`]).
#[must_use]
pub fn all() -> &'static [Entry] {
    ALL.all()
}

/// Adds heuristics of the program's own, once, before anything asks for [`all`]. False, and nothing is added, where
/// that is too late.
pub fn bring(more: &[Entry]) -> bool {
    ALL.add(more)
}

/// A heuristic with its parameters, as a user asks for it: `long:n=4`.
pub type Spec = parameters::Spec<Entry>;

impl Named for Entry {
    const KIND: &'static str = "heuristic";

    fn registry() -> &'static [Entry] {
        all()
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn parameters(&self) -> &'static [Parameter] {
        self.parameters
    }
}

/// A heuristic's name with the parameters alone that are not at their defaults; what cannot be read stays as it is.
#[must_use]
pub fn brief(heuristic: &str) -> String {
    Spec::parse(heuristic).map_or_else(|_| heuristic.to_owned(), |spec| spec.brief())
}

/// Whether a model collects lanes at predicted places: it has barriers, and lanes meet nowhere else.
#[must_use]
pub fn collects(spec: &Spec) -> bool {
    let meets_anywhere = || spec.entry().name == models::barrier::ENTRY.name && spec.settings.choice("meet") != 0;
    spec.entry().family == Family::Barriers && !meets_anywhere()
}

/// Makes a heuristic for a warp, or a block, of so many lanes.
#[must_use]
pub fn build(spec: &Spec, lanes: usize, program: &Program) -> Box<dyn Heuristic> {
    let model = (spec.entry().build)(&spec.settings, lanes, program);
    match longest_predicated(spec) {
        0 => model,
        most => Box::new(Predicated::new(model, most)),
    }
}

/// The most instructions of an arm that a heuristic runs predicated, so that lanes do not part for it: 0 for none.
#[must_use]
pub fn longest_predicated(spec: &Spec) -> u32 {
    let has = spec.entry().parameters.iter().any(|parameter| parameter.name == predication::PARAMETER.name);
    if has { spec.settings.count(predication::PARAMETER.name) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_alone_gets_every_default_spelt_out() {
        assert_eq!(Spec::parse("long").unwrap().to_string(), "long:n=4");
        assert_eq!(Spec::parse("minpc").unwrap().to_string(), "minpc");
        assert_eq!(
            Spec::parse("rd-minsp-pc:threshold=8,decrement=yes").unwrap().to_string(),
            "rd-minsp-pc:hysteresis=4,threshold=8,decrement=yes"
        );
    }

    #[test]
    fn every_spelling_reads_back_as_itself() {
        for spec in Spec::parse_list("all").unwrap() {
            assert_eq!(Spec::parse(&spec.to_string()).unwrap().to_string(), spec.to_string());
        }
    }

    #[test]
    fn the_brief_form_has_what_is_not_a_default_and_reads_back_as_the_same() {
        let brief = |text| Spec::parse(text).unwrap().brief();
        assert_eq!([brief("long:n=4"), brief("long:n=8"), brief("minpc")], ["long", "long:n=8", "minpc"]);
        assert_eq!(brief("barrier:placement=structured,predicate=0"), "barrier:placement=structured");
        for spec in Spec::parse_list("all").unwrap() {
            assert_eq!(spec.brief(), spec.entry().name);
            assert_eq!(Spec::parse(&spec.brief()).unwrap().to_string(), spec.to_string());
        }
    }

    #[test]
    fn commas_separate_heuristics_and_parameters() {
        let specs = Spec::parse_list("minpc,rd-minsp-pc:hysteresis=0,threshold=8,long:n=2,lee").unwrap();
        let shown: Vec<String> = specs.iter().map(Spec::to_string).collect();
        assert_eq!(shown, ["minpc", "rd-minsp-pc:hysteresis=0,threshold=8,decrement=no", "long:n=2", "lee"]);
    }

    #[test]
    fn errors_name_what_is_possible() {
        let message = |text| Spec::parse(text).unwrap_err().to_string();
        let said = message("ipdon");
        let (wrong, names) = said.split_once("; there are: ").expect("the names follow");
        assert_eq!(wrong, "there is no heuristic \"ipdon\" (did you mean ipdom?)");
        assert!(REGISTRY.iter().all(|entry| names.split(", ").any(|name| name == entry.name)), "{names}");
        assert!(message("long:m=1").starts_with("heuristic long has no parameter \"m\"; it has n"));
        assert!(message("barrier:palcement=nak").contains(" (did you mean placement?); it has "));
        assert_eq!(message("minpc:n=1"), "heuristic minpc has no parameter \"n\"; it has none");
        assert!(message("long:n=0").contains("n is 1 to"));
        assert!(message("long:n=1,n=2").contains("twice"));
        assert!(Spec::parse_list("").is_err());
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = REGISTRY.iter().map(|e| e.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), REGISTRY.len());
    }
}
