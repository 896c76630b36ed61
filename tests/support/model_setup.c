#include "support/model_setup.h"

const em_model_ops *find_model(const char *name)
{
    const em_model_ops *ops;

    for (int i = 0; (ops = em_model_at(i)) != NULL; i++)
        if (strcmp(ops->name, name) == 0)
            return ops;
    abort();
}

/* Splits "[a, "b"]" into its elements, or takes `text` as one. */
static em_status parse_value(const char *text, em_value *value)
{
    char copy[512], *rest = NULL, *word, *list[64];
    int n = 0;

    snprintf(copy, sizeof copy, "%s", text);
    *value = (em_value){.kind = *text == '\0'  ? EM_VALUE_NULL
                                : *text == '[' ? EM_VALUE_LIST
                                               : EM_VALUE_SCALAR};
    if (value->kind == EM_VALUE_SCALAR)
        list[n++] = copy;
    else if (value->kind == EM_VALUE_LIST)
        for (word = strtok_r(copy + 1, ",]", &rest); word; word = strtok_r(NULL, ",]", &rest)) {
            list[n] = word + strspn(word, " \"");
            list[n][strcspn(list[n], "\"")] = '\0';
            n++;
        }
    if (em_allocate(n, sizeof *value->text.value, &value->text.value))
        return EM_EMEMORY;
    for (; value->text.count < n; value->text.count++)
        if (em_copy_text(list[value->text.count], &value->text.value[value->text.count]))
            return EM_EMEMORY;
    return EM_OK;
}

em_status set_option(const em_field *field, const char *text, void *options)
{
    em_value value;
    em_status status;

    if (field->type == EM_FIELD_JSON && *text == '\0')
        return EM_OK;
    if (field->type == EM_FIELD_JSON)
        return em_copy_text(text, (char **)((char *)options + field->offset));
    status = parse_value(text, &value);

    if (!status)
        status = em_field_read(field, &value, options);
    em_value_release(&value);
    return status;
}

em_status set_options(const em_model_ops *ops, const setting *settings, void *options)
{
    em_status status = EM_OK;

    for (const em_field *field = ops->fields; !status && field && field->name; field++) {
        const char *text = field->fallback;
        for (const setting *s = settings; s && s->name; s++)
            if (strcmp(s->name, field->name) == 0)
                text = s->value;
        status = set_option(field, text, options);
    }
    return status;
}

em_rows all_rows(const em_model *model)
{
    return model->n_chunk > 0 ? (em_rows){.all = true} : (em_rows){.count = model->rows.count};
}

void teardown(setup *s)
{
    if (s->model)
        s->model->ops->destroy(s->model);
    em_field_release(s->ops->fields, s->options);
    free(s->options);
    *s = (setup){NULL, NULL, NULL};
}

em_status try_setup_for(int64_t n_chain, const char *name, const setting *settings, int64_t shard,
                        int64_t n_shard, setup *s)
{
    em_status status;

    s->ops = find_model(name);
    const em_model_context context = {1, shard, n_shard, true, s->ops, 0, n_chain};
    s->model = NULL;
    s->options = calloc(1, s->ops->options_size + 1);
    status = set_options(s->ops, settings, s->options);
    if (!status)
        status = s->ops->create(s->options, &context, &s->model);
    return status ? status : em_model_summarise(s->model, NULL);
}

em_status try_setup(const char *name, const setting *settings, int64_t shard, int64_t n_shard,
                    setup *s)
{
    return try_setup_for(1, name, settings, shard, n_shard, s);
}

double density_at(const setup *s, const double *theta)
{
    enum { MOST = 40 };
    _Alignas(64) double at[MOST] = {0}, gradient[MOST] = {0};
    double sum = 0;
    em_query query = {.n_chain = 1,
                      .stride = em_stride(s->model->dim),
                      .theta = at,
                      .log_density = &sum,
                      .gradient = gradient,
                      .rows = all_rows(s->model)};

    if (query.stride > MOST)
        abort();
    memcpy(at, theta, (size_t)s->model->dim * sizeof *theta);
    if (s->ops->add_prior(s->model, &query) ||
        (s->ops->add_likelihood && s->ops->add_likelihood(s->model, &query)))
        abort();
    return sum;
}
