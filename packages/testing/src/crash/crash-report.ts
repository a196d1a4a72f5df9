/** The report of a crash matrix: what was lost, repeated and diverged, each with the points at which it was. */
import { printable } from "@statewright/core";
import type { CrashFinding } from "./crash-findings.ts";

/** One death, and what came of it. */
export interface CrashedAt {
  /** Its number, from 1, and its name: `7 after tool refund`. */
  readonly point: string;
  readonly findings: readonly CrashFinding[];
  /** What a person has to find out before the run goes on. */
  readonly inDoubt?: string | undefined;
  /** False where the run never came to the point again, as when its work is done in another order. */
  readonly reached: boolean;
}

/** A finding and where it was. */
export interface CrashFindingAt extends CrashFinding {
  readonly point: string;
}

/** What became of a graph that died at every point. */
export interface CrashMatrix {
  readonly graph: string;
  readonly points: readonly CrashedAt[];
  readonly lost: readonly CrashFindingAt[];
  readonly repeated: readonly CrashFindingAt[];
  readonly diverged: readonly CrashFindingAt[];
  /** Points after which a person is asked what has happened: a `once` effect was under way, and nothing could reconcile it. */
  readonly inDoubt: readonly string[];
  /** Channels that have another value in every run, also without a crash: they are not compared. */
  readonly varying: readonly string[];
  readonly survived: boolean;
  /** All of it for people: each finding once, with its points. */
  readonly text: string;
}

const mostShown = 3;

/** Put the deaths together. */
export function crashReport(graph: string, points: readonly CrashedAt[], varying: readonly string[]): CrashMatrix {
  const all = points.flatMap(({ point, findings }) =>
    findings.map((finding): CrashFindingAt => ({ ...finding, point })),
  );
  const of = (kind: CrashFinding["kind"]): readonly CrashFindingAt[] => all.filter((each) => each.kind === kind);
  const died = points.filter(({ reached }) => reached);
  const bad = points.filter(({ findings }) => findings.length > 0);
  const inDoubt = points.flatMap(({ point, inDoubt: why }) => (why === undefined ? [] : [point]));
  const counted = `${died.length} ${died.length === 1 ? "point" : "points"}`;
  const head =
    bad.length === 0
      ? `the graph "${graph}" survives a crash at each of ${counted}`
      : `the graph "${graph}" does not survive a crash at ${bad.length} of ${counted}`;
  return {
    graph,
    points,
    lost: of("lost"),
    repeated: of("repeated"),
    diverged: of("diverged"),
    inDoubt,
    varying,
    survived: bad.length === 0,
    text: printable(
      [
        `${head}.`,
        ...grouped(all),
        ...(inDoubt.length === 0
          ? []
          : [
              `in doubt, a person is asked: at ${places(inDoubt)}\n  Give the effect a reconcile that asks the other side.`,
            ]),
        ...(varying.length === 0
          ? []
          : [
              `not compared, since every run has another value: channel ${varying.map((name) => `"${name}"`).join(", ")}\n  Take times, ids and chance from a step, or from the clock of the runtime.`,
            ]),
      ].join("\n"),
    ),
  };
}

function grouped(all: readonly CrashFindingAt[]): readonly string[] {
  const groups = new Map<string, { readonly finding: CrashFindingAt; readonly points: string[] }>();
  for (const finding of all) {
    const key = `${finding.kind} ${finding.about}`;
    const group = groups.get(key) ?? { finding, points: [] };
    groups.set(key, group);
    group.points.push(finding.point);
  }
  return [...groups.values()].map(
    ({ finding: { kind, said, next }, points }) => `${kind}: ${said}.\n  at ${places(points)}\n  ${next}.`,
  );
}

function places(points: readonly string[]): string {
  const shown = points.slice(0, mostShown).map((point) => `point ${point}`);
  return `${shown.join("; ")}${points.length > mostShown ? `; and ${points.length - mostShown} more` : ""}`;
}
