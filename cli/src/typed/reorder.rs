//! `replay --reorder PLACE --key KEY`: lanes regrouped each time that they come to a place, as it was typed.

use attribution::Place;
use replay::SortKey;
use verdict::reorder::Reorder;

/// What was typed.
#[derive(clap::Args, Clone)]
pub(crate) struct ReorderOptions {
    /// Regroup lanes each time that they come to this line or address
    ///
    /// As shader execution reordering does: those that come there for the same time are sorted by --key and make new
    /// warps. Shown beside the same lanes without it
    #[arg(long, value_name = "PLACE")]
    reorder: Option<Place>,

    /// What --reorder sorts lanes by: path, trips or instructions
    ///
    /// Of what they run up to where they are regrouped next. Default: path
    #[arg(long, value_name = "KEY", requires = "reorder", value_parser = key, hide_short_help = true)]
    key: Option<SortKey>,
}

fn key(text: &str) -> Result<SortKey, String> {
    text.parse().map_err(|()| "it is path, trips or instructions".to_owned())
}

impl ReorderOptions {
    /// What was meant; none where lanes are not regrouped.
    pub(crate) fn meant(&self) -> Option<Reorder> {
        let place = self.reorder.clone()?;
        Some(Reorder { place, key: self.key.unwrap_or(SortKey::Path) })
    }
}
