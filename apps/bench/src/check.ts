/**
 * Verdict of `--check`: ratios, growth and amounts of memory within a single bench run, never absolute times, so that
 * the verdict holds on any machine.
 */
import type { Check } from "./case.ts";
import type { CaseReport, Report } from "./case-report.ts";
import { fitLoadGrowth, type Load } from "./load/load.ts";
import type { Measurement } from "./measure.ts";

/**
 * Default maximum of the growth exponent. An exponent from 1.1 on is a finding: a larger heap alone costs the garbage
 * collector a little more, a wrong algorithm much more.
 */
const defaultMaxGrowth = 1.25;

/**
 * Maximum heap growth per run. Not 0, because garbage collection is not exact; the smallest leaked listener is
 * larger.
 */
const maxHeapBytesPerRun = 32;

/** Maximum heap growth per agent run, of which fewer are measured; a leaked state or handle is larger. */
const maxHeapBytesPerAgentRun = 512;

/** Maximum heap growth per superstep or send within one run; the smallest leaked object is larger. */
const maxHeapBytesPerUnit = 16;

/** Maximum memory of active threads above the memory of the idle process, checked up to `maxLoadThreads` threads. */
const maxLoadMb = 192;
const maxLoadThreads = 1_000;

/** Returns a sentence for each violated ratio or limit. */
export function listFailures({ cases, leaks, retainedHeap: retained, load }: Report): readonly string[] {
  const failed = cases.flatMap((each) => [...checkRatios(each), ...checkAmounts(each), ...checkGrowth(each)]);
  const { bytesPerStep = 0, bytesPerSavedStep = 0, bytesPerSend = 0 } = retained ?? {};
  for (const [unit, bytes] of Object.entries({
    superstep: bytesPerStep,
    "saved superstep": bytesPerSavedStep,
    send: bytesPerSend,
  }))
    if (bytes > maxHeapBytesPerUnit) failed.push(`a run retains ${bytes.toFixed(0)} bytes of heap per ${unit}`);
  failed.push(...checkLoad(load));
  if (leaks === undefined) return failed;
  if (leaks.heapBytesPerRun > maxHeapBytesPerRun)
    failed.push(`a finished run leaks ${leaks.heapBytesPerRun.toFixed(0)} bytes of heap`);
  const agentHeapBytes = leaks.agents.heapBytesPerRun;
  if (agentHeapBytes > maxHeapBytesPerAgentRun)
    failed.push(`a finished agent run leaks ${agentHeapBytes.toFixed(0)} bytes of heap`);
  if (leaks.handles > 0) failed.push(`the runs leaked ${leaks.handles} handles or timers`);
  if (leaks.listeners > 0) failed.push(`the runs leaked ${leaks.listeners} listeners`);
  return failed;
}

/** A waiting run needs no heap. The check uses the heap growth per added run, because caches are filled before. */
function checkLoad(load: Load | undefined): readonly string[] {
  const failed = (load?.active ?? [])
    .filter(({ threads, maxRssMb, rssBeforeMb }) => threads <= maxLoadThreads && maxRssMb - rssBeforeMb > maxLoadMb)
    .map(
      ({ threads, maxRssMb, rssBeforeMb }) =>
        `${threads} active threads took ${(maxRssMb - rssBeforeMb).toFixed(0)} MB`,
    );
  const { bytesPerWaitingRun: bytes = 0 } = load === undefined ? {} : fitLoadGrowth(load);
  return bytes <= maxHeapBytesPerRun ? failed : [...failed, `a waiting run retains ${bytes.toFixed(0)} bytes of heap`];
}

function checkRatios({ id, checks, contenders }: CaseReport): readonly string[] {
  return checks.flatMap(({ subject: subjectName, baseline: baselineName, measure, max: allowed }) => {
    const [subject, baseline] = [subjectName, baselineName].map((name) =>
      contenders.find((contender) => contender.name === name),
    );
    if (subject === undefined || baseline === undefined) return [];
    const ratio = getCost(subject, measure) / getCost(baseline, measure);
    const label = measure === "bytes" ? "bytes" : `${measure} time`;
    return ratio <= allowed
      ? []
      : [
          `${id}: ${subjectName} needs ${ratio.toFixed(2)} times the ${label} of ${baselineName}, expected at most ${allowed}`,
        ];
  });
}

function checkAmounts({ id, unit, amounts = [], contenders }: CaseReport): readonly string[] {
  return amounts.flatMap(({ subject, measure, max }) => {
    const found = contenders.find(({ name }) => name === subject);
    const amount = found === undefined ? 0 : getCost(found, measure);
    return amount <= max
      ? []
      : [`${id}: ${subject} needs ${Math.round(amount)} ${measure} for each ${unit}, expected at most ${max}`];
  });
}

function getCost({ cpuUs, wallUs, bytes = Number.NaN }: Measurement, measure: Check["measure"]): number {
  if (measure === "bytes") return bytes;
  return measure === "cpu" ? cpuUs.median : wallUs.median;
}

/** Growth up to the growth of the case's limit is allowed: the platform itself grows in this way. */
function checkGrowth({ id, contenders, maxGrowth: caseMaxGrowth = defaultMaxGrowth }: CaseReport): readonly string[] {
  const limits = contenders.flatMap(({ role, growth }) => (role === "limit" && growth !== undefined ? [growth] : []));
  const allowed = Math.max(caseMaxGrowth, ...limits.map(({ exponent }) => exponent));
  return contenders.flatMap(({ name, role, growth }) => {
    const { exponent = 0, bytesExponent = 0 } = role === "ours" ? (growth ?? {}) : {};
    return Object.entries({ "CPU time": exponent, "bytes on disk": bytesExponent }).flatMap(([label, measured]) =>
      measured <= allowed
        ? []
        : [
            `${id}: the ${label} of ${name} grows with exponent ${measured.toFixed(2)}, expected at most ${allowed.toFixed(2)}`,
          ],
    );
  });
}
