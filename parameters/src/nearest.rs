//! What was probably meant by a name that does not exist.

/// The name that is nearest to what was typed, where one is near enough to have been meant: at most a third of its
/// letters differ, or one begins with the other. Case, `_` and `-` make no difference.
///
/// ```
/// assert_eq!(parameters::nearest("ipdm", ["minpc", "ipdom"]), Some("ipdom"));
/// assert_eq!(parameters::nearest("elephant", ["minpc", "ipdom"]), None);
/// ```
pub fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace(['_', ' '], "-");
    let wanted = plain(typed);
    let distance = |name: &str| {
        let name = plain(name);
        let begins = wanted.len() >= 3 && (name.starts_with(&wanted) || wanted.starts_with(&name) && name.len() >= 3);
        // A name that begins alike comes after one that differs in one letter, and before all others.
        let letters = strsim::damerau_levenshtein(&wanted, &name);
        let most = wanted.chars().count().max(name.chars().count()) / 3;
        if letters <= most.max(1) && letters < wanted.chars().count() {
            Some((letters.min(2), letters))
        } else {
            begins.then_some((1, letters))
        }
    };
    let known = names.into_iter().filter_map(|name| Some((distance(name)?, name)));
    known.min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}

/// ` (did you mean ipdom?)` where a name is near, else nothing.
pub fn did_you_mean<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    nearest(typed, names).map_or_else(String::new, |name| format!(" (did you mean {name}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 6] = ["minpc", "minsp-pc", "ipdom", "tf-stack", "long-minsp-pc", "transform"];

    #[test]
    fn what_differs_in_a_letter_or_begins_alike_is_meant() {
        let meant = |typed| nearest(typed, NAMES);
        assert_eq!(
            [meant("ipdm"), meant("IPDOM"), meant("tf_stack")],
            [Some("ipdom"), Some("ipdom"), Some("tf-stack")]
        );
        assert_eq!([meant("minspc"), meant("minps-pc")], [Some("minpc"), Some("minsp-pc")]);
        assert_eq!(meant("trans"), Some("transform"));
    }

    #[test]
    fn what_is_far_from_all_is_none_of_them() {
        assert_eq!([nearest("xyz", NAMES), nearest("", NAMES), nearest("a", ["b"])], [None; 3]);
        assert_eq!(did_you_mean("hedgehog", NAMES), "");
        assert_eq!(did_you_mean("ipdon", NAMES), " (did you mean ipdom?)");
    }
}
