/** Limits on what a single request may hand to the acts of its caller. */
import type { AnswerRequest, CallerService, StartRequest } from "../service/caller-service.ts";
import type { ServerLimits } from "./limits.ts";
import { RequestProblem } from "./problem.ts";
import { createProblem } from "./problem-table.ts";

/**
 * Returns the acts with limits on messages and answers. A request above a limit throws the problem `body_too_large`
 * before anything is saved.
 */
export function limitActs<Service extends CallerService>(service: Service, limits: ServerLimits): Service {
  const checked: Pick<CallerService, "startRun" | "answer" | "sendMessage"> = {
    startRun: async (thread, request) => {
      checkCount("messages", countMessages(request), limits.messages);
      return service.startRun(thread, request);
    },
    answer: async (thread, request) => {
      checkCount("answers", countAnswers(request), limits.answers);
      return service.answer(thread, request);
    },
    sendMessage: async (thread, message) => {
      checkCount("messages", message.messages.length, limits.messages);
      return service.sendMessage(thread, message);
    },
  };
  return { ...service, ...checked };
}

function countMessages({ input }: StartRequest): number {
  if (typeof input !== "object" || input === null) return 0;
  const messages: unknown = Reflect.get(input, "messages");
  return Array.isArray(messages) ? messages.length : 0;
}

function countAnswers({ answers }: AnswerRequest): number {
  return Object.keys(answers).length;
}

function checkCount(what: string, count: number, max: number): void {
  if (count <= max) return;
  throw new RequestProblem(
    createProblem("body_too_large", { detail: `Expected at most ${max} ${what} in a request, got ${count}.` }),
  );
}
