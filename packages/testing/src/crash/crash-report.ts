/** Report of a crash matrix: lost, repeated and diverged data by crash point. */
import { escapeControlChars } from "@statewright/core/adapter";
import type { CrashFinding } from "./crash-findings.ts";

/** Result of a crash. */
export interface CrashPointResult {
  /** Number from 1 and name of the point: `7 after tool refund`. */
  readonly point: string;
  readonly findings: readonly CrashFinding[];
  /** The effect in doubt that a person must resolve before the run can continue. */
  readonly inDoubt?: string | undefined;
  /** False when the run did not reach the point again, for example because work ran in another order. */
  readonly reached: boolean;
}

/** A finding and the crash point. */
export interface CrashPointFinding extends CrashFinding {
  readonly point: string;
}

/** Results of a crash matrix. */
export interface CrashMatrix {
  readonly graph: string;
  readonly points: readonly CrashPointResult[];
  readonly lost: readonly CrashPointFinding[];
  readonly repeated: readonly CrashPointFinding[];
  readonly diverged: readonly CrashPointFinding[];
  /**
   * Points after which an effect is in doubt: a `once` effect was started and had no `reconcile` that could decide.
   */
  readonly inDoubt: readonly string[];
  /** Channels with a different value in every run, even without a crash. These channels are not compared. */
  readonly varying: readonly string[];
  readonly survived: boolean;
  /** Complete report as text: each finding once, with its points. */
  readonly text: string;
}

const maxShownPoints = 3;

/** Combines the results of all crashes into a report. */
export function createCrashReport(
  graph: string,
  points: readonly CrashPointResult[],
  varying: readonly string[],
): CrashMatrix {
  const all = points.flatMap(({ point, findings }) =>
    findings.map((finding): CrashPointFinding => ({ ...finding, point })),
  );
  const filterKind = (kind: CrashFinding["kind"]): readonly CrashPointFinding[] =>
    all.filter((each) => each.kind === kind);
  const reached = points.filter(({ reached }) => reached);
  const failed = points.filter(({ findings }) => findings.length > 0);
  const inDoubt = points.flatMap(({ point, inDoubt: effect }) => (effect === undefined ? [] : [point]));
  const pointCount = `${reached.length} ${reached.length === 1 ? "point" : "points"}`;
  const head =
    failed.length === 0
      ? `the graph "${graph}" survives a crash at each of ${pointCount}`
      : `the graph "${graph}" does not survive a crash at ${failed.length} of ${pointCount}`;
  return {
    graph,
    points,
    lost: filterKind("lost"),
    repeated: filterKind("repeated"),
    diverged: filterKind("diverged"),
    inDoubt,
    varying,
    survived: failed.length === 0,
    text: escapeControlChars(
      [
        `${head}.`,
        ...formatGroups(all),
        ...(inDoubt.length === 0
          ? []
          : [
              `in doubt, a person must decide: at ${formatPoints(inDoubt)}\n  Add a reconcile function to the effect that queries the external service.`,
            ]),
        ...(varying.length === 0
          ? []
          : [
              `not compared, because the value differs in every run: channel ${varying.map((name) => `"${name}"`).join(", ")}\n  Get times, ids and random values from a step, or from the clock of the runtime.`,
            ]),
      ].join("\n"),
    ),
  };
}

function formatGroups(all: readonly CrashPointFinding[]): readonly string[] {
  const groups = new Map<string, { readonly finding: CrashPointFinding; readonly points: string[] }>();
  for (const finding of all) {
    const key = `${finding.kind} ${finding.about}`;
    const group = groups.get(key) ?? { finding, points: [] };
    groups.set(key, group);
    group.points.push(finding.point);
  }
  return [...groups.values()].map(
    ({ finding: { kind, message, next }, points }) => `${kind}: ${message}.\n  at ${formatPoints(points)}\n  ${next}.`,
  );
}

function formatPoints(points: readonly string[]): string {
  const shown = points.slice(0, maxShownPoints).map((point) => `point ${point}`);
  return `${shown.join("; ")}${points.length > maxShownPoints ? `; and ${points.length - maxShownPoints} more` : ""}`;
}
