//! What happens when a pass finds its own work wrong: an assertion in it or in the layer below fails, or LLVM's
//! verifier objects.
//!
//! The module is then in an unknown state and is given up. Its compilation goes on with the code as it was before. So a
//! fault in a pass costs the transformation of one file, and never the program.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use crate::{Error, Result};

thread_local! {
    /// The place of the last panic, while a pass runs on this thread.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a pass. A panic in it becomes an [`Error::Refused`], and prints nothing.
pub(crate) fn caught<T>(pass: &'static str, run: impl FnOnce() -> Result<T>) -> Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let noted = PLACE.with_borrow_mut(|place| {
                let noted = place.is_some();
                if noted {
                    *place = info.location().map(ToString::to_string).or(Some(String::new()));
                }
                noted
            });
            if !noted {
                before(info);
            }
        }));
    });
    PLACE.set(Some(String::new()));
    let done = panic::catch_unwind(AssertUnwindSafe(run));
    let place = PLACE.take().unwrap_or_default();
    match done {
        Ok(Err(Error::Bug(why))) => Err(Error::Refused { pass, why }),
        Ok(result) => result,
        Err(payload) => Err(Error::Refused { pass, why: format!("{}, at {place}", words(payload.as_ref())) }),
    }
}

fn words(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("an assertion failed")
}
