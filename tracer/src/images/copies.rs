//! Which parts of memory make up one copy of a file's image, and its bias: what was added to its addresses.
//!
//! The kernel's map of a process names the file and the offset of each part, not the segment that it was mapped for.
//! Segments can share a page of the file: linkers that leave no gap between them in the file (lld, mold, all of them
//! with `-z noseparate-code`) place each at an address of its own, and the shared page is mapped once for each. So one
//! part of memory can fit several segments, each with another bias. All parts of one copy have the same bias, so that
//! is the one which most parts fit.

use crate::images::elf::Image;
use crate::images::modules::{KERNEL_CODE, OWN_MEMORY, Region};

/// A file's image, as it was mapped once.
#[derive(Debug)]
pub(crate) struct Copy<'r> {
    /// Its parts, by address.
    pub regions: Vec<&'r Region>,
    /// What was added to the file's addresses.
    pub bias: u64,
}

/// The parts of memory where a file or the kernel's code is mapped, file by file; files without executable parts are
/// left out.
pub(crate) fn by_file(regions: &[Region]) -> Vec<Vec<&Region>> {
    let mut files: Vec<Vec<&Region>> = Vec::new();
    for region in regions {
        let is_kernel = region.path == KERNEL_CODE;
        if !is_kernel && (region.file.1 == 0 || region.path == OWN_MEMORY) {
            continue;
        }
        // What belongs together mostly lies together.
        match files.iter_mut().rev().find(|parts| parts[0].file == region.file) {
            Some(parts) => parts.push(region),
            None => files.push(vec![region]),
        }
    }
    files.retain(|parts| parts.iter().any(|part| part.executable));
    files
}

/// The copies of one file that hold executable memory; `regions` are all parts of memory where the file is mapped, by
/// address.
pub(crate) fn of<'r>(regions: &[&'r Region], image: Option<&Image>) -> Vec<Copy<'r>> {
    let mut left = regions.to_vec();
    let mut copies = Vec::new();
    while let Some(bias) = image.and_then(|image| best_bias(&left, image)) {
        let (own, others) = left.into_iter().partition(|part| fits(part, image, bias));
        copies.push(Copy { regions: own, bias });
        left = others;
    }
    copies.extend(by_offset(&left));
    copies
}

fn fits(part: &Region, image: Option<&Image>, bias: u64) -> bool {
    image.is_some_and(|image| image.fits(part.start, part.offset, part.executable).any(|fit| fit.bias == bias))
}

/// The bias that most parts fit, of those that an executable part fits. Between equals protections decide, then whether
/// a program lies where it must.
fn best_bias(parts: &[&Region], image: &Image) -> Option<u64> {
    let fits = |part: &Region| image.fits(part.start, part.offset, part.executable);
    let votes = |bias: u64| {
        let own = parts.iter().map(|part| fits(part).filter(|fit| fit.bias == bias));
        own.fold((0, 0), |(all, same), mut fits| {
            let first = fits.next();
            let is_same = first.is_some_and(|fit| fit.same_protection) || fits.any(|fit| fit.same_protection);
            (all + usize::from(first.is_some()), same + usize::from(is_same))
        })
    };
    let mut biases: Vec<u64> =
        parts.iter().filter(|part| part.executable).flat_map(|part| fits(part)).map(|fit| fit.bias).collect();
    biases.sort_unstable();
    biases.dedup();
    biases.into_iter().max_by_key(|&bias| (votes(bias), image.fixed && bias == 0))
}

/// Copies of a file that is not an image, or of parts that are in none of its segments. Such a file is mapped from the
/// front to the back, so a lower offset begins another copy.
fn by_offset<'r>(parts: &[&'r Region]) -> impl Iterator<Item = Copy<'r>> {
    let runs = parts.chunk_by(|a, b| a.offset <= b.offset);
    let executable = runs.filter(|run| run.iter().any(|part| part.executable));
    executable.map(|run| Copy { regions: run.to_vec(), bias: run[0].start.wrapping_sub(run[0].offset) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of one file: start, end, offset, whether executable.
    fn parts(parts: &[(u64, u64, u64, bool)]) -> Vec<Region> {
        let part = |&(start, end, offset, executable)| Region {
            start,
            end,
            writable: false,
            executable,
            shared: false,
            offset,
            file: ("fe:01".to_owned(), 7),
            path: "/a".to_owned(),
        };
        parts.iter().map(part).collect()
    }

    fn biases(regions: &[Region], image: &Image) -> Vec<(u64, usize)> {
        let all: Vec<&Region> = regions.iter().collect();
        of(&all, Some(image)).iter().map(|copy| (copy.bias, copy.regions.len())).collect()
    }

    /// As lld lays a small program out: no gap in the file, a page apart in memory.
    fn one_page() -> Image {
        let four = [(0, 0, 0x600, false), (0x600, 0x1600, 0x200, true), (0x800, 0x2800, 0x1f0, false)];
        Image::of_segments(false, &[&four[..], &[(0x9f0, 0x39f0, 0x10, false)]].concat())
    }

    #[test]
    fn segments_that_share_a_page_are_one_copy() {
        let map = [(0x1000, 0x2000, 0, false), (0x2000, 0x3000, 0, true), (0x3000, 0x5000, 0, false)];
        assert_eq!(biases(&parts(&map), &one_page()), [(0x1000, 3)]);
    }

    #[test]
    fn readable_memory_that_is_executable_too_misleads_nobody() {
        let map = [(0x1000, 0x2000, 0, true), (0x2000, 0x3000, 0, true), (0x3000, 0x4000, 0, true)];
        assert_eq!(biases(&parts(&map), &one_page()), [(0x1000, 3)]);
    }

    #[test]
    fn two_copies_side_by_side_are_two() {
        let copy = |at: u64| [(at, false), (at + 0x1000, true), (at + 0x2000, false), (at + 0x3000, false)];
        let map: Vec<_> =
            [copy(0x1000), copy(0x5000)].concat().into_iter().map(|(at, code)| (at, at + 0x1000, 0, code)).collect();
        let mut found = biases(&parts(&map), &one_page());
        found.sort_unstable();
        assert_eq!(found, [(0x1000, 4), (0x5000, 4)]);
    }

    #[test]
    fn a_file_that_is_mapped_to_be_read_adds_nothing() {
        let map = [(0x1000, 0x2000, 0, false), (0x2000, 0x3000, 0, true), (0x90000, 0x91000, 0, false)];
        assert_eq!(biases(&parts(&map), &one_page()), [(0x1000, 2)]);
    }

    #[test]
    fn a_program_with_addresses_of_its_own_lies_there() {
        let image = Image::of_segments(true, &[(0, 0x40_0000, 0x600, true), (0x600, 0x40_1600, 0x200, true)]);
        assert_eq!(biases(&parts(&[(0x40_1000, 0x40_2000, 0, true)]), &image), [(0, 1)]);
    }

    #[test]
    fn copies_of_a_file_that_is_no_image_begin_at_lower_offsets() {
        let map = parts(&[(0x1000, 0x2000, 0, true), (0x3000, 0x4000, 0x1000, false), (0x5000, 0x6000, 0, true)]);
        let all: Vec<&Region> = map.iter().collect();
        let found: Vec<_> = of(&all, None).iter().map(|copy| (copy.bias, copy.regions.len())).collect();
        assert_eq!(found, [(0x1000, 2), (0x5000, 1)]);
    }
}
