/** Problems: one table of codes, and what of a failure leaves the server. */
import { StatewrightError } from "@statewright/core";
import { errorCodes } from "@statewright/core/adapter";
import { expect, test } from "vitest";
import { formatProblem } from "../../src/http/problem-response.ts";
import { createProblem, type ProblemCode, problemTable } from "../../src/http/problem-table.ts";
import { toProblem } from "../../src/http/to-problem.ts";

const parts = { what: "the thread t.acme.x at /var/lib/agents.db has a secret", next: "Look there" };

test("each error code has one row with a title and a status for each protocol [V137]", () => {
  for (const code of errorCodes) {
    const row = problemTable[code];
    expect([code, row.title]).toEqual([code, expect.stringMatching(/^[A-Z][^.]*\.( [A-Z][^.]*\.)?$/)]);
    expect([code, [403, 404, 409, 410, 422, 500, 503].includes(row.status)]).toEqual([code, true]);
    expect([code, [403, 404, 409, 422, 500, 503].includes(row.langgraph)]).toEqual([code, true]);
  }
  expect(problemTable.thread_busy).toMatchObject({ status: 409, langgraph: 422 });
  expect(problemTable.interrupt_expired).toMatchObject({ status: 410, langgraph: 409 });
  const rows: Readonly<Record<ProblemCode, unknown>> = problemTable;
  // @ts-expect-error A code without a row does not compile.
  const incomplete: Readonly<Record<ProblemCode | "new_code", unknown>> = problemTable;
  expect(incomplete).toBe(rows);
});

test("a failure shows its code and its title, and never message, cause, place or stack [V136]", async () => {
  for (const code of errorCodes) {
    const error = new StatewrightError(code, { ...parts, place: { thread: "t.acme.x" }, cause: new Error("SQL") });
    const response = formatProblem({ ...toProblem(error), requestId: "r1" });
    const text = await response.text();
    expect([code, /secret|agents\.db|acme|SQL|stack/.test(text)]).toEqual([code, false]);
    const body: unknown = JSON.parse(text);
    const shown = problemTable[code].kind === "internal" ? "internal" : code;
    expect([code, body]).toEqual([
      code,
      {
        type: `urn:statewright:error:${shown}`,
        title: problemTable[code].title,
        status: response.status,
        code: shown,
        instance: "urn:statewright:request:r1",
      },
    ]);
  }
  expect(toProblem(new Error("secret"))).toEqual(createProblem("internal"));
  expect(toProblem("secret")).toEqual(createProblem("internal"));
  expect(toProblem(new Error("the cause"), { exposeErrors: true })).toMatchObject({ detail: "the cause" });
});

test("a store that is locked, full or closed, and a stopped engine, answer 503 with Retry-After [V119]", () => {
  for (const code of ["store_locked", "store_full", "store_closed", "store_unreachable", "engine_stopped"] as const) {
    const response = formatProblem(toProblem(new StatewrightError(code, parts)));
    expect([code, response.status, response.headers.get("retry-after")]).toEqual([code, 503, "1"]);
  }
});

test("an input that does not fit shows the places of its public schema as JSON pointers [V136]", () => {
  const details = [
    { path: ["messages", 0, "a/b"], message: "Invalid input" },
    { path: [], message: "Too short" },
  ];
  const error = new StatewrightError("invalid_input", { ...parts, details });
  expect(toProblem(error).errors).toEqual([
    { pointer: "/messages/0/a~1b", detail: "Invalid input" },
    { pointer: "", detail: "Too short" },
  ]);
});
