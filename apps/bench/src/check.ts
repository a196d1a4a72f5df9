/** The verdict of `--check`: ratios and growth within one run, never absolute times, so that it holds on any machine. */
import type { CaseReport, Report } from "./report.ts";

/** Growth above this fails. Above 1.1 is worth a look: a larger heap costs the collector more, an algorithm costs more still. */
const steepest = 1.25;

/** Heap that a run may seem to leave: the collector is not exact. The smallest listener takes more. */
const mostHeapBytesPerRun = 32;

/** The same for one superstep or send of a run that goes on: the smallest object takes more. */
const mostHeapBytesPerUnit = 16;

/** Every ratio that does not hold, in words. */
export function failures({ cases, leaks, held }: Report): readonly string[] {
  const found = cases.flatMap((each) => [...ratiosOf(each), ...growthOf(each)]);
  const { bytesPerStep = 0, bytesPerSavedStep = 0, bytesPerSend = 0 } = held ?? {};
  for (const [unit, bytes] of Object.entries({
    superstep: bytesPerStep,
    "saved superstep": bytesPerSavedStep,
    send: bytesPerSend,
  }))
    if (bytes > mostHeapBytesPerUnit) found.push(`a run holds on to ${bytes.toFixed(0)} bytes of heap a ${unit}`);
  if (leaks === undefined) return found;
  if (leaks.heapBytesPerRun > mostHeapBytesPerRun)
    found.push(`a run leaves ${leaks.heapBytesPerRun.toFixed(0)} bytes of heap`);
  if (leaks.handles > 0) found.push(`the runs left ${leaks.handles} handles or timers`);
  if (leaks.listeners > 0) found.push(`the runs left ${leaks.listeners} listeners`);
  return found;
}

function ratiosOf({ id, checks, contenders }: CaseReport): readonly string[] {
  return checks.flatMap(({ of, to, measure, atMost }) => {
    const [one, other] = [of, to].map((name) => contenders.find((contender) => contender.name === name));
    if (one === undefined || other === undefined) return [];
    const key = measure === "cpu" ? "cpuUs" : "wallUs";
    const ratio = one[key].median / other[key].median;
    return ratio <= atMost
      ? []
      : [`${id}: ${of} needs ${ratio.toFixed(2)} times the ${measure} time of ${to}, at most ${atMost} is right`];
  });
}

/** Ours may grow as the limit of the same case does: what the platform itself shows is not ours to mend. */
function growthOf({ id, contenders }: CaseReport): readonly string[] {
  const limits = contenders.flatMap(({ role, growth }) => (role === "limit" && growth !== undefined ? [growth] : []));
  const most = Math.max(steepest, ...limits.map(({ exponent }) => exponent));
  return contenders.flatMap(({ name, role, growth }) =>
    role !== "ours" || growth === undefined || growth.exponent <= most
      ? []
      : [`${id}: ${name} grows with the exponent ${growth.exponent.toFixed(2)}, at most ${most.toFixed(2)} is right`],
  );
}
