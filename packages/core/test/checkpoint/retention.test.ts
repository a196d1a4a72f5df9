import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { planRetention, type RetainedCheckpoint, type RetainedNamespace } from "../../src/checkpoint/retention.ts";

/** Random thread with branches, forks, subgraph calls and persistent subgraphs, as runs write it. */
const thread = fc
  .array(
    fc.record({
      do: fc.constantFrom("step", "step", "step", "call", "kept", "fork"),
      pick: fc.nat(100),
      at: fc.nat(50),
    }),
    { minLength: 1, maxLength: 60 },
  )
  .map((items) => {
    const lines = new Map<string, { from: number | undefined; checkpoints: RetainedCheckpoint[] }>();
    lines.set("main", { from: undefined, checkpoints: [] });
    let id = 0;
    const write = (name: string, at: number, from?: number): void => {
      const line = lines.get(name) ?? { from, checkpoints: [] };
      lines.set(name, line);
      id += 1;
      line.checkpoints.push({ id, at, step: line.checkpoints.length, seq: id, run: "r1", source: "step" });
    };
    write("main", 0);
    for (const { do: what, pick, at } of items) {
      const branches = [...lines.keys()].filter((name) => !name.includes("/"));
      const branch = branches[pick % branches.length] ?? "main";
      const head = lines.get(branch)?.checkpoints.at(-1);
      if (what === "fork") {
        const own = [...lines.values()].flatMap(({ checkpoints }) => checkpoints);
        const origin = [...lines].find(
          ([name, { checkpoints }]) => !name.includes("/") && checkpoints.includes(own[pick % own.length] as never),
        );
        if (origin !== undefined) write(`b${lines.size}`, at, own[pick % own.length]?.id);
      } else if (what === "step") write(branch, at);
      else write(`${branch}/${what === "kept" ? "node" : `${head?.step ?? 0}:0`}`, at);
    }
    return [...lines].map(
      ([name, line]): RetainedNamespace => ({ name, unfinishedRun: undefined, hasOnceEffects: false, ...line }),
    );
  });

const retention = fc.record({
  keepLast: fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined }),
  since: fc.option(fc.nat(60), { nil: undefined }),
});

/** Returns the remaining checkpoints of each namespace after a plan. */
function listRemaining(
  lines: readonly RetainedNamespace[],
  plan: ReturnType<typeof planRetention>,
): readonly RetainedNamespace[] {
  return lines.flatMap((line) => {
    const done = plan.namespaces.find(({ name }) => name === line.name);
    if (done?.isRemoved === true) return [];
    const isPruned = (id: number): boolean => (done?.ranges ?? []).some(({ after, at }) => id > after && id <= at);
    return [{ ...line, checkpoints: line.checkpoints.filter(({ id }) => !isPruned(id)) }];
  });
}

function ids(lines: readonly RetainedNamespace[]): readonly number[] {
  return lines.flatMap(({ checkpoints }) => checkpoints.map(({ id }) => id)).toSorted((one, other) => one - other);
}

describe("retention plan of a random thread", () => {
  test("retention keeps branch heads, requested checkpoints, fork points and the persistent subgraph state at those checkpoints", () => {
    fc.assert(
      fc.property(thread, retention, (lines, policy) => {
        const after = listRemaining(lines, planRetention(lines, policy, Number.POSITIVE_INFINITY));
        const stays = new Set(ids(after));
        for (const line of lines) {
          const branch = !line.name.includes("/");
          if (line.from !== undefined && after.some(({ name }) => name === line.name))
            expect(stays).toContain(line.from);
          if (!branch) continue;
          const wanted = line.checkpoints.slice(-(policy.keepLast ?? 1));
          for (const { id } of wanted) expect(stays).toContain(id);
          for (const { id, at } of line.checkpoints) if (at >= (policy.since ?? 100)) expect(stays).toContain(id);
          const node = lines.find(({ name }) => name === `${line.name}/node`)?.checkpoints ?? [];
          for (const { id } of line.checkpoints) {
            const then = node.findLast((each) => each.id < id);
            if (stays.has(id) && then !== undefined) expect(stays).toContain(then.id);
          }
          if (node.length > 0) expect(stays).toContain(node.at(-1)?.id);
        }
      }),
    );
  });

  test("retention removes a subgraph call with the checkpoint that made it, when nothing continues from the call", () => {
    fc.assert(
      fc.property(thread, retention, (lines, policy) => {
        const stays = new Set(ids(listRemaining(lines, planRetention(lines, policy, Number.POSITIVE_INFINITY))));
        for (const { name, checkpoints } of lines.filter((line) => /\/\d+:\d+$/.test(line.name))) {
          const parent = lines.find((line) => line.name === name.slice(0, name.lastIndexOf("/")));
          for (const { id } of checkpoints) {
            const caller = parent?.checkpoints.findLast((each) => each.id < id);
            if (caller !== undefined && !stays.has(caller.id)) expect(stays).not.toContain(id);
          }
        }
      }),
    );
  });

  test("retention keeps a subgraph call with a once effect while a fork may repeat the call", () => {
    fc.assert(
      fc.property(thread, retention, (plain, policy) => {
        const lines = plain.map((line) => ({ ...line, hasOnceEffects: true }));
        const after = listRemaining(lines, planRetention(lines, policy, Number.POSITIVE_INFINITY));
        for (const { name, checkpoints } of lines.filter((line) => /\/\d+:\d+$/.test(line.name))) {
          const parentName = name.slice(0, name.lastIndexOf("/"));
          const first = checkpoints[0]?.id ?? 0;
          const caller = lines
            .find((line) => line.name === parentName)
            ?.checkpoints.findLast(({ id }) => id < first)?.id;
          const oldest = after.find((line) => line.name === parentName)?.checkpoints[0]?.id ?? 0;
          if ((caller ?? 0) >= oldest) expect(after.map((line) => line.name)).toContain(name);
        }
      }),
    );
  });

  test("retention in small batches removes the same checkpoints as in one batch, and then removes nothing more", () => {
    fc.assert(
      fc.property(thread, retention, fc.integer({ min: 1, max: 7 }), (lines, policy, limit) => {
        const whole = listRemaining(lines, planRetention(lines, policy, Number.POSITIVE_INFINITY));
        let some: readonly RetainedNamespace[] = lines;
        for (
          let plan = planRetention(some, policy, limit);
          plan.removed > 0;
          plan = planRetention(some, policy, limit)
        ) {
          expect(plan.removed).toBeLessThanOrEqual(limit);
          some = listRemaining(some, plan);
        }
        // When a namespace is deleted completely, the checkpoint that it continued from is not needed.
        for (let plan = planRetention(whole, policy, 100); plan.removed > 0; ) {
          expect(ids(listRemaining(whole, plan))).toEqual(ids(some));
          break;
        }
        expect(ids(some).every((id) => ids(whole).includes(id))).toBe(true);
        expect(planRetention(some, policy, limit).removed).toBe(0);
      }),
    );
  });

  test("pruned ranges contain exactly the removed checkpoints, each between retained checkpoints", () => {
    fc.assert(
      fc.property(thread, retention, fc.integer({ min: 1, max: 50 }), (lines, policy, limit) => {
        const plan = planRetention(lines, policy, limit);
        expect(ids(lines).length - ids(listRemaining(lines, plan)).length).toBe(plan.removed);
        for (const { name, ranges, isRemoved } of plan.namespaces) {
          const all = lines.find((line) => line.name === name)?.checkpoints.map(({ id }) => id) ?? [];
          for (const { after, at } of ranges) {
            expect(after === 0 || all.includes(after)).toBe(true);
            expect(all).toContain(at);
          }
          if (isRemoved) expect(ranges).toHaveLength(1);
        }
      }),
    );
  });
});
