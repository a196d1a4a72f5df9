/**
 * Message stream filtered by `onModelDelta` hooks of middleware. Withheld text is emitted with the complete message
 * only.
 */

import { describeThrown } from "../../base/errors.ts";
import type { World } from "../../base/world.ts";
import type { ModelDelta } from "../../model/model.ts";
import type { Middleware } from "../../tool/policy/middleware.ts";
import type { MessageStream } from "./message-stream.ts";

type Filter = (delta: ModelDelta) => ModelDelta | null;

/**
 * Creates a stream behind the filters, the last middleware first as in `afterModel`. Returns the stream itself
 * without filters.
 */
export function createFilteredStream(
  world: World,
  stream: MessageStream,
  middleware: readonly Middleware[],
): MessageStream {
  const filteringMiddleware = middleware.filter(({ onModelDelta }) => onModelDelta !== undefined).toReversed();
  if (filteringMiddleware.length === 0) return stream;
  let filters: readonly Filter[] | undefined;
  const applyFilters = (delta: ModelDelta): ModelDelta | null => {
    filters ??= filteringMiddleware.map(createFilter);
    let filtered: ModelDelta | null = delta;
    for (const filter of filters) {
      if (filtered === null) return null;
      filtered = filter(filtered);
    }
    return filtered;
  };
  const createFilter = ({ name, onModelDelta }: Middleware): Filter => {
    let broken = false;
    const fail = (thrown: unknown): null => {
      broken = true;
      world.log(
        "warn",
        `the onModelDelta filter of middleware "${name}" failed; the rest of this reply is not streamed`,
        {
          error: describeThrown(thrown),
        },
      );
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
    emitDelta: (delta, canonical) => {
      const filtered = applyFilters(delta);
      if (filtered !== null) stream.emitDelta(filtered, canonical);
    },
    retract: (model, kind) => {
      filters = undefined;
      stream.retract(model, kind);
    },
    finish: stream.finish,
  };
}
