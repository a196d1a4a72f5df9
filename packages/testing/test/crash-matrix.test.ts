import { call, crashMatrix, say, scriptedModel } from "@statewright/testing";
import "@statewright/testing/vitest";
import { describe, expect, test } from "vitest";
import { desk, words } from "./support/desk.ts";
import { type Defect, orders } from "./support/orders.ts";

function matrix(defect: Defect) {
  return crashMatrix((outside) => ({
    graph: orders(outside, defect),
    input: { order: "7" },
    answers: { ship: true },
  }));
}

test("a graph that records what it does survives a crash at every point of its run", async () => {
  const survivor = await matrix("none");
  expect(survivor).toSurviveCrashes();
  expect(survivor.points.map(({ point }) => point)).toMatchInlineSnapshot(`
    [
      "1 before the commit of the input",
      "2 after the commit of the input",
      "3 before node charge",
      "4 before step charge",
      "5 after "charge order 7"",
      "6 after step charge",
      "7 after node charge",
      "8 before the commit of step 1 (charge)",
      "9 after the commit of step 1 (charge)",
      "10 before node ask",
      "11 before the commit of the question ship",
      "12 after the commit of the question ship",
      "13 before the commit of the answer to ship",
      "14 after the commit of the answer to ship",
      "15 before node ask",
      "16 after node ask",
      "17 before the commit of step 2 (ask)",
      "18 after the commit of step 2 (ask)",
      "19 before node ship",
      "20 after node ship",
      "21 before the commit of step 3 (ship), the end of the run",
      "22 after the commit of step 3 (ship), the end of the run",
    ]
  `);
});

describe("a planted defect is caught", () => {
  test("an effect in a body, outside any step", async () => {
    expect((await matrix("bare effect")).text).toMatchInlineSnapshot(`
      "the graph "orders" does not survive a crash at 3 of 20 points.
      repeated: "charge order 7" happened twice, in the body of node "charge", outside any step.
        at point 4 after "charge order 7"; point 5 after node charge; point 6 before the commit of step 1 (charge)
        A body starts again after a crash. Do it in a step: step("…", ({ idempotencyKey }) => …, { effect: "once" })."
    `);
  });

  test("a step that does not tell the other side its key", async () => {
    expect((await matrix("no key")).text).toMatchInlineSnapshot(`
      "the graph "orders" does not survive a crash at 4 of 22 points.
      repeated: "charge order 7" happened twice, in step "charge" of node "charge".
        at point 5 after "charge order 7"; point 6 after step charge; point 7 after node charge; and 1 more
        The step "charge" is idempotent, so it is done again when a crash comes before its outcome is saved. Give the other side its idempotencyKey, or mark it { effect: "once" }."
    `);
  });

  test("a write that waits in a variable", async () => {
    expect((await matrix("lost write")).text).toMatchInlineSnapshot(`
      "the graph "orders" does not survive a crash at 13 of 22 points.
      lost: the channel "log" is ["charged","yes","shipped"], and ["charged","yes","charged","shipped"] without a crash.
        at point 9 after the commit of step 1 (charge); point 10 before node ask; point 11 before the commit of the question ship; and 10 more
        What a node keeps in variables, or in a channel that is not saved, is gone with the process: write it to a channel."
    `);
  });

  test("a resume that asks twice", async () => {
    expect((await matrix("asks twice")).text).toMatchInlineSnapshot(`
      "the graph "orders" does not survive a crash at 4 of 22 points.
      repeated: the question "ship" in node "ask" was asked again, though its answer was saved: twice instead of once.
        at point 14 after the commit of the answer to ship; point 15 before node ask; point 16 after node ask; and 1 more
        After a crash a body asks again from its first line, and a question that shows something else is another one: show what comes from the state, the input or a step."
    `);
  });

  test("a value that every process makes up", async () => {
    expect((await matrix("chance")).text).toMatchInlineSnapshot(`
      "the graph "orders" survives a crash at each of 22 points.
      not compared, since every run has another value: channel "token"
        Take times, ids and chance from a step, or from the clock of the runtime."
    `);
  });

  test("a tool that does not tell the other side its key; one that is once leaves a person in doubt", async () => {
    expect((await mails("idempotent")).text).toMatchInlineSnapshot(`
      "the graph "desk" does not survive a crash at 3 of 19 points.
      repeated: "a mail to Ada" happened twice, in tool "mail".
        at point 10 after "a mail to Ada"; point 11 after tool mail; point 12 before the commit of step 2 (tools)
        The tool "mail" is idempotent, so it is done again when a crash comes before its outcome is saved. Give the other side its idempotencyKey, or mark it { effect: "once" }."
    `);
    expect((await mails("once")).text).toMatchInlineSnapshot(`
      "the graph "desk" survives a crash at each of 21 points.
      in doubt, a person is asked: at point 10 after the commit of the start of tool mail; point 11 before tool mail; point 12 after "a mail to Ada"; and 2 more
        Give the effect a reconcile that asks the other side."
    `);
  });
});

/** A desk that sends one mail. */
function mails(effect: "idempotent" | "once") {
  return crashMatrix(({ did }) => ({
    graph: desk({ effect, did }),
    input: words("Write to Ada"),
    model: scriptedModel([call("mail", { to: "Ada" }), say("Done")]),
  }));
}

test("a run that never ends by itself is an error that says what it waits for", async () => {
  const unanswered = crashMatrix((outside) => ({ graph: orders(outside, "none"), input: { order: "7" } }));
  await expect(unanswered).rejects.toThrowErrorMatchingInlineSnapshot(
    `[Error: the run of graph "orders" does not come to its end without a crash: it waits for "ship". Give its answers: answers: { … }.]`,
  );
});
