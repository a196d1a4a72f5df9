/** Checks the options of a delivery. */
import { checkId } from "../../base/ids.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { checkChoice, checkCount, checkFlag, checkOptions, listOptionNames } from "../../base/options.ts";
import type { Delivery, DeliveryBase, DeliveryLimits } from "./delivery.ts";

const works = ["run", "answers", "message", "cancel", "timers", "resume"] as const;

const names = [
  ...listOptionNames<DeliveryBase>({
    thread: true,
    branch: true,
    key: true,
    claim: true,
    at: true,
    signal: true,
    graceMs: true,
    limits: true,
  }),
  ...works,
  "by",
];

const limitNames = listOptionNames<DeliveryLimits>({ ms: true, supersteps: true, effects: true });

/** Throws `invalid_option` or `invalid_id` for an invalid delivery. */
export function checkDelivery(delivery: Delivery): void {
  checkOptions("deliver", delivery, names);
  const { thread, branch, key, claim = "free", at, graceMs, limits } = delivery;
  checkId("thread", thread);
  if (branch !== undefined) checkId("branch", branch);
  if (key !== undefined) checkId("key of a delivery", key);
  checkChoice("deliver", { claim }, ["free", "force"]);
  checkCount("deliver", { at, graceMs }, 0);
  if (limits !== undefined) {
    checkOptions("deliver", limits, limitNames);
    checkCount("deliver", { ms: limits.ms, supersteps: limits.supersteps, effects: limits.effects });
  }
  const given = works.filter((name) => name in delivery);
  const [work] = given;
  if (work === undefined || given.length > 1)
    throw invalidOption({
      where: "deliver",
      option: "delivery",
      expected: `one of ${works.join(", ")}`,
      found: given.length === 0 ? "none" : given.join(", "),
      fix: "Pass one kind of work, and deliver others under keys of their own",
    });
  if (key === undefined && work !== "timers" && work !== "resume")
    throw invalidOption({
      where: "deliver",
      option: "key",
      expected: `an idempotency key of the ${work}`,
      got: undefined,
      fix: "Pass the id of the job: a delivery repeated under its key is not done again",
    });
  if ("timers" in delivery) checkFlag("deliver", { timers: delivery.timers });
  if ("resume" in delivery) checkFlag("deliver", { resume: delivery.resume });
}
