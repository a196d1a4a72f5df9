/** Supervisor of a process or a connection, with resources whose end the test controls. */
import { isToolError } from "@statewright/core";
import { expect, test } from "vitest";
import {
  createSupervisor,
  type SupervisedResource,
  type Supervisor,
  type SupervisorOptions,
} from "../src/supervisor.ts";

interface Numbered extends SupervisedResource {
  readonly number: number;
  readonly end: () => void;
}

/** Creates a supervisor with numbered resources. The test decides about each start. */
function createTestSupervisor(options: Partial<SupervisorOptions<Numbered>> = {}) {
  const resources: Numbered[] = [];
  const live = (): Numbered => {
    let isAlive = true;
    const end = (): void => {
      isAlive = false;
    };
    const resource: Numbered = { number: resources.length + 1, isAlive: () => isAlive, end, close: async () => end() };
    resources.push(resource);
    return resource;
  };
  const it = createSupervisor(live(), {
    name: "thing",
    verb: "started",
    restart: "lazy",
    maxRestarts: 3,
    canStart: undefined,
    startNext: async () => live(),
    ...options,
  });
  return { it, live, resources, endLast: () => it.latest.end() };
}

const requestNumber = (it: Supervisor<Numbered>): Promise<number | string> =>
  it.ensureActive().then(
    ({ number }) => number,
    (error: unknown) => (isToolError(error) ? `${error.kind}: ${error.message}` : String(error)),
  );

/** Creates a promise that the test resolves. */
function createGate() {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

test("calls during a plugin restart wait for a single start and use its process", async () => {
  const { open, opened } = createGate();
  const startedSupervisor: number[] = [];
  const { it, live, resources, endLast } = createTestSupervisor({
    startNext: async () => {
      await opened;
      return live();
    },
    onStarted: async ({ number }) => void startedSupervisor.push(number),
  });
  expect(await requestNumber(it)).toBe(1);
  endLast();
  expect(it.active).toBeUndefined();
  const calls = [requestNumber(it), requestNumber(it), requestNumber(it)];
  open();
  expect(await Promise.all(calls)).toEqual([2, 2, 2]);
  expect(resources).toHaveLength(2);
  expect(startedSupervisor).toEqual([2]);
});

test("a plugin restarts a limited number of times in a row, and the count resets after an answer or a manual restart", async () => {
  const { it, live, endLast } = createTestSupervisor({ maxRestarts: 2 });
  const next = async (): Promise<number | string> => {
    endLast();
    return requestNumber(it);
  };
  expect([await next(), await next()]).toEqual([2, 3]);
  const over = "unavailable: The thing has ended. It was started again 2 times and ended each time before an answer.";
  expect([await next(), await next()]).toEqual([over, over]);
  await it.restart(async () => live());
  expect(await requestNumber(it)).toBe(4);
  expect(await next()).toBe(5);
  it.resetRestarts();
  expect([await next(), await next(), await next()]).toEqual([6, 7, over]);
  const never = createTestSupervisor({ restart: "never" });
  never.endLast();
  expect(await requestNumber(never.it)).toBe("unavailable: The thing has ended.");
});

test("trust is requested at each plugin start, and a refusal starts nothing and counts as no restart", async () => {
  const answers = [true, false, false, true];
  const { it, resources, endLast } = createTestSupervisor({
    maxRestarts: 2,
    canStart: async () => answers.shift() === true,
  });
  endLast();
  expect(await requestNumber(it)).toBe(2);
  endLast();
  const no = expect.stringMatching(/^denied: .*its current state is not approved/);
  expect([await requestNumber(it), await requestNumber(it)]).toEqual([no, no]);
  expect(resources).toHaveLength(2);
  expect(await requestNumber(it)).toBe(3);
});

test("a failed plugin start is unavailable for every waiting call, and the next call tries again", async () => {
  const { open, opened } = createGate();
  let fails = true;
  const { it, live, endLast } = createTestSupervisor({
    startNext: async () => {
      await opened;
      if (fails) throw new Error("no such command");
      return live();
    },
  });
  endLast();
  const calls = [requestNumber(it), requestNumber(it)];
  open();
  expect(await Promise.all(calls)).toEqual(["unavailable: no such command", "unavailable: no such command"]);
  // The cause of a failed start is for people; a model reads only that the start failed.
  const error: unknown = await it.ensureActive().catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({
    userMessage: "no such command",
    modelMessage: "The thing has ended and could not be started again. The tool call was not made.",
    cause: new Error("no such command"),
  });
  fails = false;
  expect(await requestNumber(it)).toBe(2);
});

test("a manual restart ends the previous process first, calls wait for the next one, and a concurrent close leaves none alive", async () => {
  const { it, live, resources } = createTestSupervisor();
  const { open, opened } = createGate();
  const restarted = it.restart(async () => {
    expect(resources.map((resource) => resource.isAlive())).toEqual([false]);
    await opened;
    return live();
  });
  const call = requestNumber(it);
  open();
  await restarted;
  expect(await call).toBe(2);
  const both = [it.restart(async () => live()), it.restart(async () => live())];
  await Promise.all(both);
  expect(resources.filter((resource) => resource.isAlive())).toEqual([it.latest]);
  const last = it.restart(async () => live());
  await it.close();
  await last;
  expect(resources.filter((resource) => resource.isAlive())).toEqual([]);
  expect(it.isClosed).toBe(true);
  expect(await requestNumber(it)).toBe("unavailable: The thing is closed.");
  await it.restart(async () => live());
  expect(await requestNumber(it)).toBe(it.latest.number);
});

test("a failed manual restart leaves no active process, and the next call starts one", async () => {
  const { it } = createTestSupervisor();
  const failed = it.restart(async () => {
    throw new Error("other tools");
  });
  expect(it.active).toBeUndefined();
  const call = requestNumber(it);
  await expect(failed).rejects.toThrow("other tools");
  expect(await call).toBe("unavailable: other tools");
  expect(await requestNumber(it)).toBe(2);
});

test("a call that waits during several restarts gets the process of the last one", async () => {
  const { it, live } = createTestSupervisor();
  const { open, opened } = createGate();
  const first = it.restart(async () => {
    await opened;
    return live();
  });
  const call = requestNumber(it);
  const second = it.restart(async () => live());
  open();
  await Promise.all([first, second]);
  expect(await call).toBe(3);
  await Promise.all([it.restart(async () => live()), it.close()]);
  expect(await requestNumber(it)).toBe("unavailable: The thing is closed.");
});

test("a close or restart does not wait for an open trust request, which may itself close the plugin", async () => {
  const never = new Promise<never>(() => undefined);
  const asking = createTestSupervisor({ canStart: () => never });
  asking.endLast();
  const call = requestNumber(asking.it);
  await asking.it.close();
  expect([await call, asking.resources.length]).toEqual(["unavailable: The thing is closed.", 1]);

  const startedSupervisor = createTestSupervisor({
    onStarted: () => (startedSupervisor.resources.length === 2 ? startedSupervisor.it.close() : never),
  });
  startedSupervisor.endLast();
  expect(await requestNumber(startedSupervisor.it)).toBe("unavailable: The thing is closed.");
  expect(startedSupervisor.it.latest.isAlive()).toBe(false);
  await startedSupervisor.it.restart(async () => startedSupervisor.live());
  startedSupervisor.endLast();
  const other = requestNumber(startedSupervisor.it);
  await startedSupervisor.it.restart(async () => startedSupervisor.live());
  expect(await other).toBe(startedSupervisor.it.latest.number);
});
