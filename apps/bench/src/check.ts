/** The verdict of `--check`: ratios and growth within one run, never absolute times, so that it holds on any machine. */
import type { Check } from "./case.ts";
import { type Load, loadGrowth } from "./load/load.ts";
import type { Measured } from "./measure.ts";
import type { CaseReport, Report } from "./report.ts";

/** Growth above this fails. From 1.1 on it is a finding: a larger heap costs the collector more, an algorithm costs more still. */
const usual = 1.25;

/** Heap that a run may seem to leave: the collector is not exact. The smallest listener takes more. */
const mostHeapBytesPerRun = 32;

/** Heap that a run of an agent may seem to leave, of which there are fewer: its state or its handle takes more. */
const mostHeapBytesPerAgentRun = 512;

/** The same for one superstep or send of a run that goes on: the smallest object takes more. */
const mostHeapBytesPerUnit = 16;

/** Memory that threads at work may add to that of their process: up to so many of them. */
const mostLoadMb = 192;
const threadsOfMost = 1_000;

/** Every ratio that does not hold, in words. */
export function failures({ cases, leaks, held, load }: Report): readonly string[] {
  const found = cases.flatMap((each) => [...ratiosOf(each), ...growthOf(each)]);
  const { bytesPerStep = 0, bytesPerSavedStep = 0, bytesPerSend = 0 } = held ?? {};
  for (const [unit, bytes] of Object.entries({
    superstep: bytesPerStep,
    "saved superstep": bytesPerSavedStep,
    send: bytesPerSend,
  }))
    if (bytes > mostHeapBytesPerUnit) found.push(`a run holds on to ${bytes.toFixed(0)} bytes of heap a ${unit}`);
  found.push(...loadOf(load));
  if (leaks === undefined) return found;
  if (leaks.heapBytesPerRun > mostHeapBytesPerRun)
    found.push(`a run leaves ${leaks.heapBytesPerRun.toFixed(0)} bytes of heap`);
  const ofAgents = leaks.agents.heapBytesPerRun;
  if (ofAgents > mostHeapBytesPerAgentRun) found.push(`a run of an agent leaves ${ofAgents.toFixed(0)} bytes of heap`);
  if (leaks.handles > 0) found.push(`the runs left ${leaks.handles} handles or timers`);
  if (leaks.listeners > 0) found.push(`the runs left ${leaks.listeners} listeners`);
  return found;
}

/** A waiting run holds nothing: what more of them add to the heap is counted, caches are there before. */
function loadOf(load: Load | undefined): readonly string[] {
  const found = (load?.active ?? [])
    .filter(({ threads, mostRssMb, rssBeforeMb }) => threads <= threadsOfMost && mostRssMb - rssBeforeMb > mostLoadMb)
    .map(
      ({ threads, mostRssMb, rssBeforeMb }) =>
        `${threads} threads at work took ${(mostRssMb - rssBeforeMb).toFixed(0)} MB`,
    );
  const { bytesOfParked: bytes = 0 } = load === undefined ? {} : loadGrowth(load);
  return bytes <= mostHeapBytesPerRun ? found : [...found, `a waiting run holds ${bytes.toFixed(0)} bytes of heap`];
}

function ratiosOf({ id, checks, contenders }: CaseReport): readonly string[] {
  return checks.flatMap(({ of, to, measure, atMost }) => {
    const [one, other] = [of, to].map((name) => contenders.find((contender) => contender.name === name));
    if (one === undefined || other === undefined) return [];
    const ratio = costOf(one, measure) / costOf(other, measure);
    const what = measure === "bytes" ? "bytes" : `${measure} time`;
    return ratio <= atMost
      ? []
      : [`${id}: ${of} needs ${ratio.toFixed(2)} times the ${what} of ${to}, at most ${atMost} is right`];
  });
}

function costOf({ cpuUs, wallUs, bytes = Number.NaN }: Measured, measure: Check["measure"]): number {
  if (measure === "bytes") return bytes;
  return measure === "cpu" ? cpuUs.median : wallUs.median;
}

/** Ours may grow as the limit of the same case does: what the platform itself shows is not ours to mend. */
function growthOf({ id, contenders, steepest = usual }: CaseReport): readonly string[] {
  const limits = contenders.flatMap(({ role, growth }) => (role === "limit" && growth !== undefined ? [growth] : []));
  const most = Math.max(steepest, ...limits.map(({ exponent }) => exponent));
  return contenders.flatMap(({ name, role, growth }) => {
    const { exponent = 0, bytesExponent = 0 } = role === "ours" ? (growth ?? {}) : {};
    return Object.entries({ "CPU time": exponent, "bytes on disk": bytesExponent }).flatMap(([what, found]) =>
      found <= most
        ? []
        : [
            `${id}: the ${what} of ${name} grows with the exponent ${found.toFixed(2)}, at most ${most.toFixed(2)} is right`,
          ],
    );
  });
}
