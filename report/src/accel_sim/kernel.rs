//! Kernels as files: their heads, and the lines of their warps, block by block.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use replay::Result;

use super::code::Code;
use super::warp::{Lines, Scratch};
use super::{BLOCK, WARP, failed};

/// Writes a kernel for each launch, and the list of them; returns how many there are.
pub(super) fn write(warps: &[Lines], scratch: &Scratch, code: &Code, name: &str, folder: &Path) -> Result<usize> {
    let mut launches: BTreeMap<u32, Vec<&Lines>> = BTreeMap::new();
    warps.iter().for_each(|warp| launches.entry(warp.launch).or_default().push(warp));
    let mut list = String::new();
    for (number, mut warps) in (1..).zip(launches.into_values()) {
        warps.sort_by_key(|warp| warp.number);
        let file = format!("kernel-{number}.traceg");
        let path = folder.join(&file);
        let kernel = Kernel { number, name, warps, code, scratch };
        File::create(&path)
            .and_then(|out| kernel.write(BufWriter::new(out)))
            .map_err(|source| failed(&path, source))?;
        list += &format!("{file}\n");
    }
    let path = folder.join("kernelslist.g");
    std::fs::write(&path, &list).map_err(|source| failed(&path, source))?;
    Ok(list.lines().count())
}

struct Kernel<'a> {
    number: usize,
    name: &'a str,
    warps: Vec<&'a Lines>,
    code: &'a Code,
    scratch: &'a Scratch,
}

impl Kernel<'_> {
    fn write(&self, mut out: impl Write) -> std::io::Result<()> {
        let seats = self.warps.len() * WARP;
        let lanes: usize = self.warps.iter().map(|warp| warp.lanes).sum();
        // In several blocks of one size there are threads without a lane: they end at once.
        let threads = if seats <= BLOCK && self.warps[..self.warps.len() - 1].iter().all(|warp| warp.lanes == WARP) {
            lanes
        } else {
            seats.min(BLOCK)
        };
        let blocks: Vec<&[&Lines]> = self.warps.chunks(BLOCK / WARP).collect();
        writeln!(out, "-kernel name = {}", self.name.replace(char::is_whitespace, "_"))?;
        writeln!(out, "-kernel id = {}", self.number)?;
        writeln!(out, "-grid dim = ({},1,1)\n-block dim = ({threads},1,1)", blocks.len())?;
        writeln!(out, "-shmem = 0\n-nregs = {}", self.code.registers.max(1))?;
        // The names of instructions are those of the A100.
        writeln!(out, "-binary version = 80\n-cuda stream id = 0")?;
        writeln!(out, "-shmem base_addr = 0x00007f0000000000\n-local mem base_addr = 0x00007f0002000000")?;
        writeln!(out, "-nvbit version = 1.5.5\n-accelsim tracer version = 3\n")?;
        writeln!(
            out,
            "#traces format = PC mask dest_num [reg_dests] opcode src_num [reg_srcs] mem_width [adrrescompress?] [mem_addresses]"
        )?;
        for (block, warps) in blocks.iter().enumerate() {
            writeln!(out, "\n#BEGIN_TB\n\nthread block = {block},0,0")?;
            for (number, first) in (0..threads).step_by(WARP).enumerate() {
                let seats = (threads - first).min(WARP);
                self.warp(&mut out, number, warps.get(number).copied(), u32::MAX >> (WARP - seats))?;
            }
            writeln!(out, "\n#END_TB")?;
        }
        out.flush()
    }

    /// The lines of a warp, and its end.
    fn warp(&self, out: &mut impl Write, number: usize, warp: Option<&Lines>, threads: u32) -> std::io::Result<()> {
        let instructions = warp.map_or(0, |warp| warp.instructions);
        writeln!(out, "\nwarp = {number}\ninsts = {}", instructions + 1)?;
        for piece in warp.iter().flat_map(|warp| &warp.pieces) {
            out.write_all(&self.scratch.get(*piece)?)?;
        }
        writeln!(out, "{:04x} {threads:08x} 0 EXIT 0 0 ", self.code.exit)
    }
}
