/** The program of a graph of nodes: superstep after superstep. */
import { findGraphIncompatibilities } from "../migration/compatibility.ts";
import { graphMigrator } from "../migration/migrate.ts";
import type { Program } from "../migration/program.ts";
import { graphReader } from "../migration/thread-snapshot.ts";
import { readOutput } from "../session/output.ts";
import { restoreGraphPosition } from "../session/restore-position.ts";
import { applyInput, parseInputWrites } from "../superstep/input.ts";
import { runToEnd } from "./loop.ts";
import { resumeGraph } from "./resume-graph.ts";

/** Program of the graphs of `defineGraph`. */
export const graphProgram: Program = Object.freeze({
  ...graphReader,
  ...graphMigrator,
  parseInput: (plan, codec, input) => parseInputWrites(plan, codec, input === undefined ? {} : input),
  enter: (kernel) => kernel.enter()[0],
  restore: restoreGraphPosition,
  derivesPosition: true,
  readOutput,
  begin: (session, input, writes) =>
    applyInput(
      session,
      writes ?? parseInputWrites(session.position.plan, session.env.codec, input === undefined ? {} : input),
    ),
  run: (session) => runToEnd(session),
  recover: (session) => runToEnd(session, { answered: [] }),
  resume: resumeGraph,
  isPreemptible: true,
  isBounded: true,
  findIncompatibilities: findGraphIncompatibilities,
} satisfies Program);
