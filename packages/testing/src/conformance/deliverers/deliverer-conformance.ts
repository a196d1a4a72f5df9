/** Conformance suite of deliverers: selects the scenarios whose parts a deliverer has, and lists the others. */
import { delivererScenarios } from "./deliverer-scenarios.ts";
import type { DelivererPart, DelivererTest } from "./deliverer-test.ts";

/** Tests for a deliverer, and the scenarios that are not run. */
export interface DelivererConformance {
  readonly tests: readonly DelivererTest[];
  /** A line for each scenario that is not run, with the reason. */
  readonly notRun: readonly string[];
}

/** Scenarios that no part of the suite simulates: each needs an outside that its adapter tests. */
const outsideScenarios: readonly (readonly [string, string])[] = [
  ["PA3", "needs a network that is cut and joined again"],
  ["PA7", "needs a replica of the store's database"],
  ["PA8", "needs a pooler of the store's database"],
  ["PA9", "needs a proxy that cuts the connection of the store"],
  ["PA10", "needs a disk that fills up"],
  ["PA13", "tests how workers share the runs of a queue, which is not the work of a deliverer"],
  ["PA14", "needs a limit of the orchestrator for the time of one delivery"],
  ["PA17", "needs two stores behind one orchestrator"],
  ["PA19", "needs a model of the orchestrator's database"],
  ["PA20", "needs hostile rows in the store's database"],
  ["PA21", "needs two stores of different kinds"],
  ["PA22", "needs older backups of the orchestrator and of the store"],
];

/**
 * Returns the tests for a deliverer with these parts, and one line for each scenario that is not run.
 *
 * @example
 * ```ts
 * const { tests, notRun } = delivererConformance(["workers", "kill"]);
 * for (const { id, name, run } of tests) test(`${name} [${id}]`, () => run(openMyDeliverer));
 * console.log(notRun.join("\n"));
 * ```
 */
export function delivererConformance(parts: readonly DelivererPart[]): DelivererConformance {
  const lacks = ({ needs }: DelivererTest): readonly DelivererPart[] => needs.filter((part) => !parts.includes(part));
  return {
    tests: delivererScenarios.filter((test) => lacks(test).length === 0),
    notRun: [
      ...delivererScenarios
        .filter((test) => lacks(test).length > 0)
        .map((test) => `${test.id} not run: the deliverer has no ${lacks(test).join(" and no ")}`),
      ...outsideScenarios.map(([id, reason]) => `${id} not run: ${reason}`),
    ],
  };
}
