/** What is told of a message while it streams, through the filters of middleware. What they withhold is told with the whole message. */
import { describeThrown } from "../../base/errors.ts";
import type { ModelDelta } from "../../model/model.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import type { Session } from "../session/session.ts";
import type { MessageStream } from "./message-stream.ts";

type Filter = (delta: ModelDelta) => ModelDelta | null;

/** The stream behind the filters, the last middleware first, as `afterModel`; the stream itself where there are none. */
export function filteredStream(
  { world }: Session,
  stream: MessageStream,
  middleware: readonly Middleware[],
): MessageStream {
  const makers = middleware.filter(({ onModelDelta }) => onModelDelta !== undefined).toReversed();
  if (makers.length === 0) return stream;
  let filters: readonly Filter[] | undefined;
  const passed = (delta: ModelDelta): ModelDelta | null => {
    filters ??= makers.map(filterOf);
    let told: ModelDelta | null = delta;
    for (const filter of filters) {
      if (told === null) return null;
      told = filter(told);
    }
    return told;
  };
  const filterOf = ({ name, onModelDelta }: Middleware): Filter => {
    let broken = false;
    const fail = (thrown: unknown): null => {
      broken = true;
      world.log("warn", `the filter of the middleware "${name}" failed: nothing more of this answer is streamed`, {
        error: describeThrown(thrown),
      });
      return null;
    };
    let filter: Filter | undefined;
    try {
      filter = onModelDelta?.();
    } catch (thrown) {
      fail(thrown);
    }
    return (delta) => {
      if (broken || filter === undefined) return null;
      try {
        return filter(delta);
      } catch (thrown) {
        return fail(thrown);
      }
    };
  };
  return {
    tell: (delta, canonical) => {
      const told = passed(delta);
      if (told !== null) stream.tell(told, canonical);
    },
    takeBack: (model, kind) => {
      filters = undefined;
      stream.takeBack(model, kind);
    },
    settle: stream.settle,
  };
}
