/** `testRun`: a run that a test can hold in a state, crash at any point, and resume in a new simulated process. */
import type { Graph, GraphTypes } from "@statewright/core";
import { listEvents, listTags } from "../node/machine-snapshot.ts";
import { listEffects, type Trace } from "../trace/trace.ts";
import { isDurableMachine } from "./instrument.ts";
import type { RunRecord } from "./run-record.ts";
import type { GraphFactory, Testable, TestRunOptions } from "./test-options.ts";
import type { Target, TestRun } from "./test-run.ts";
import { createDriver, type DriverSetup, type StopTarget, type TestRunDriver } from "./test-run-driver.ts";
import { attachTraceContext } from "./trace-context.ts";

/**
 * Prepares a run for a test. The run starts with the first `until`, `step` or `finish`, in a world whose time skips
 * ahead when no other work is pending. Pass a function that creates the graph, so that a crash drops the variables of
 * its functions too.
 */
export async function testRun<Types extends GraphTypes, Words>(
  graph: Testable<Types, Words> | GraphFactory<Types, Words>,
  options: TestRunOptions<Types, Words>,
): Promise<TestRun<Types>> {
  const createGraph = typeof graph === "function" ? graph : () => graph;
  const setup = { createGraph, options, isTwin: false } as DriverSetup;
  return openView<Types>(await createDriver(setup));
}

/** Creates the test run of a driver, and notifies the subscribers. */
function openView<Types extends GraphTypes>(driver: TestRunDriver): TestRun<Types> {
  const { graph, trace, initialState, options } = driver;
  const t = createView<Types>(driver);
  attachTraceContext(trace, { graph, run: t as never, initial: { ...initialState, ...options.startAt?.state } });
  options.order?.watch(t as never);
  return t;
}

/** Creates the object that a test reads and controls. */
function createView<Types extends GraphTypes>(driver: TestRunDriver): TestRun<Types> {
  const { record, thread, world } = driver;
  const trace: Trace<Types> = driver.trace as Trace<Types>;
  const toStopTarget = (target: Target<Types>): StopTarget => (typeof target === "function" ? () => target(t) : target);
  const t: TestRun<Types> = {
    thread,
    world,
    trace,
    get status() {
      return record.status;
    },
    get state() {
      return record.state as Types["state"];
    },
    get value() {
      return record.value;
    },
    get snapshot() {
      return resolveSnapshot(driver.graph, record);
    },
    get tags() {
      return listTags(driver.graph, record.value);
    },
    get accepts() {
      return record.interrupts.map(({ key }) => key);
    },
    get events() {
      return listEvents(driver.graph, record.value);
    },
    get interrupts() {
      return record.interrupts;
    },
    get error() {
      return record.error;
    },
    get effects() {
      return listEffects(trace);
    },
    until: (target) => driver.advanceTo(toStopTarget(target)),
    step: () => driver.step(),
    finish: () => driver.finish(),
    crash: () => driver.crash(),
    resume: (answers, { until } = {}) => driver.resume(answers, until === undefined ? undefined : toStopTarget(until)),
    cancel: (reason) => driver.cancel(reason),
    send: (message, { kind = "steer" } = {}) => driver.send(message, kind),
    twin: async () => {
      const twin = await driver.createTwin();
      const view = openView<Types>(twin);
      await twin.loadSaved();
      return view;
    },
  };
  return t;
}

/** Resolves the XState snapshot; a durable machine has the context of its state. */
function resolveSnapshot(graph: Graph, { state, value }: RunRecord): ReturnType<Graph["machine"]["resolveState"]> {
  const context = isDurableMachine(graph) && "context" in state ? state["context"] : {};
  return graph.machine.resolveState({ value: value as string, context });
}
