/** Deliveries of a simulated orchestrator over SQLite: the conformance suite, its planted faults, and random seeds. */
import { delivererConformance } from "@statewright/testing/conformance";
import { describe, expect, test } from "vitest";
import { createDeliverer, plantedFaults } from "../src/deliveries/at-least-once-deliverer.ts";
import { createLocalWorker } from "../src/deliveries/local-worker.ts";
import { createProcessWorker } from "../src/deliveries/process-worker.ts";
import { runDeliveries } from "../src/deliveries/run-deliveries.ts";

const { tests, notRun } = delivererConformance(["workers", "kill", "stop", "advance"]);

test("scenarios whose parts the simulated orchestrator lacks are listed with the reason [PK16]", () => {
  expect(notRun.map((line) => line.split(" ", 1)[0])).toEqual([
    "PA2",
    "PA3",
    "PA7",
    "PA8",
    "PA9",
    "PA10",
    "PA13",
    "PA14",
    "PA17",
    "PA19",
    "PA20",
    "PA21",
    "PA22",
  ]);
  expect(delivererConformance([]).notRun.find((line) => line.startsWith("PA1 "))).toBe(
    "PA1 not run: the deliverer has no kill",
  );
});

describe("a simulated orchestrator with workers in one process", () => {
  for (const { name, run } of tests)
    test(name, () => run(async () => createDeliverer({ createWorker: createLocalWorker })));
});

describe("a simulated orchestrator that loses, doubles and repeats deliveries", () => {
  for (const { name, run } of tests)
    test(name, () => run(async () => createDeliverer({ createWorker: createLocalWorker, seed: 7 })));
});

describe("a simulated orchestrator with workers that real signals end", () => {
  const needProcesses = tests.filter(
    ({ id, needs }) => id === "PA18" || needs.includes("kill") || needs.includes("stop"),
  );
  for (const { name, run } of needProcesses)
    test(name, () => run(async () => createDeliverer({ createWorker: createProcessWorker })));
});

test.each(plantedFaults)("an orchestrator with the planted fault %s is caught by the suite [PK16]", async (fault) => {
  const failed: string[] = [];
  for (const { id, run } of tests) {
    try {
      await run(async () => createDeliverer({ createWorker: createLocalWorker, fault }));
    } catch {
      failed.push(id);
    }
    if (failed.length > 0) break;
  }
  expect(failed).not.toEqual([]);
});

test("random deliveries that are lost, doubled and reordered end like undisturbed ones, also with killed processes [PK16, PK1]", async () => {
  expect(await runDeliveries(5, 5)).toBe(true);
});
